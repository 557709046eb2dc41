// SPDX-License-Identifier: Apache-2.0
#include "measure/energy.h"

#include "gpu/fake/fake_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

namespace purlin::measure {
namespace {

// Looks every 5 ms at a counter that moves every 100 ms, `watts` up to `from_s` and 500 W then.
std::vector<EnergyReading> readings(double watts, double from_s, double until_s) {
  std::vector<EnergyReading> made;
  for (double t = 0.003; t < until_s; t += 0.005) {
    const double step = std::floor(t * 10) / 10;
    const double mj = 1e3 * (step < from_s ? watts * step : watts * from_s + 500 * (step - from_s));
    made.push_back({t - 0.002, t + 0.002, std::floor(mj)});
  }
  return made;
}

TEST(PowerOf, IsBetweenStepsOfTheCounter) {
  const Result<Power> power = power_of(readings(100, 0.3, 1.0), 0.3);
  ASSERT_TRUE(power.is_ok()) << power.status().message();
  EXPECT_NEAR(power->watts, 500, 500 * power->error);
  EXPECT_LT(power->error, 0.02);
  EXPECT_GT(power->error, 0.01);
  // Steps from before would have shown another power.
  EXPECT_LT(power_of(readings(100, 0.3, 1.0), 0)->watts, 420);
}

TEST(PowerOf, ACounterThatStandsOrGoesBackSaysNothing) {
  const Result<Power> few = power_of(readings(100, 0.3, 0.45), 0.3);
  EXPECT_EQ(few.status().message(), "the energy counter moved 1 times in 0.15 s under load");
  EXPECT_EQ(power_of({}, 0).status().code(), Code::kUnavailable);
  std::vector<EnergyReading> back = readings(100, 0, 1);
  for (EnergyReading& reading : back) reading.mj = -reading.mj;
  EXPECT_EQ(power_of(back, 0).status().code(), Code::kUnavailable);
}

// A meter over real time; its kernels take none.
class MeteredDevice : public gpu::FakeDevice {
 public:
  Result<std::vector<Sample>> time(const gpu::Launch&, const gpu::TimingRequest& request) override {
    last = request;
    ++chunks;
    system_clock().sleep_ns(2'000'000);
    return std::vector<Sample>(static_cast<std::size_t>(request.samples), {kernel_ms, 0});
  }
  Result<double> energy_mj() override {  // 500 W, in steps of 20 ms
    ++looks;
    if (!counts) return error(Code::kUnavailable, "no meter");
    return static_cast<double>(system_clock().monotonic_ns() / 20'000'000) * 10'000;
  }
  double kernel_ms = 2;
  bool counts = true;
  int chunks = 0;
  std::atomic<int> looks{0};
  gpu::TimingRequest last;
};

Result<Energy> measured(MeteredDevice& device, int launches_per_sample = 1) {
  Timing timing;
  timing.samples = {{device.kernel_ms, 0}};
  timing.launches_per_sample = launches_per_sample;
  return measure_energy(device, gpu::Launch{}, timing, 0.2);
}

TEST(MeasureEnergy, IsThePowerForAsLongAsALaunchTakes) {
  MeteredDevice device;
  const Result<Energy> energy = measured(device);
  ASSERT_TRUE(energy.is_ok()) << energy.status().message();
  EXPECT_NEAR(energy->power_w, 500, 500 * energy->error + 50);
  EXPECT_NEAR(energy->energy_mj, energy->power_w * 2, 1e-6);
  EXPECT_EQ(device.last.samples, 10) << "chunks of 20 ms";
  EXPECT_GT(device.looks, 10);
}

TEST(MeasureEnergy, ShortKernelsGoOnAsTheyWereTimed) {
  MeteredDevice device;
  device.kernel_ms = 0.002;
  device.graphs = true;
  const Result<Energy> energy = measured(device, 100);
  ASSERT_TRUE(energy.is_ok()) << energy.status().message();
  EXPECT_NEAR(energy->energy_mj, energy->power_w * 0.002, 1e-9);
  EXPECT_EQ(device.last.launches_per_sample, 100);
  EXPECT_TRUE(device.last.graph);
  EXPECT_EQ(device.last.samples, 100);
}

TEST(MeasureEnergy, WithoutACounterThereIsNone) {
  MeteredDevice device;
  device.counts = false;
  EXPECT_EQ(measured(device).status().message(), "no meter");
  EXPECT_EQ(device.chunks, 0);
  EXPECT_EQ(gpu::FakeDevice().energy_mj().status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace purlin::measure
