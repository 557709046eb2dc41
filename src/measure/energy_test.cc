// SPDX-License-Identifier: Apache-2.0
#include "measure/energy.h"

#include "gpu/fake/fake_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>

namespace purlin::measure {
namespace {

// A counter that moves every `pace_s`, of a device that draws `watts` up to `from_s` and 500 W
// then; asking it takes 5 ms, and it answers in the midst of them. Nothing here takes real time.
struct Counter {
  double pace_s = 0.1, watts = 100, from_s = 0, phase_s = 0.037;
  double stands_from_s = 1e9;
  double asking_s = 0.005;
  int looks = 0;

  double mj(double at_s) const {
    const double counted_s = std::min(at_s, stands_from_s) - phase_s;
    const double step = std::floor(counted_s / pace_s) * pace_s + phase_s;
    return std::floor(1e3 * (watts * std::min(step, from_s) + 500 * std::max(0.0, step - from_s)));
  }
  Result<Power> watched_by(EnergyWatch watch, double now_s) {
    while (const std::optional<double> next_s = watch.next_s()) {
      now_s = std::max(now_s, *next_s);
      watch.saw({now_s, now_s + asking_s, mj(now_s + asking_s / 2)});
      now_s += asking_s;
      ++looks;
    }
    return watch.power();
  }
};

TEST(EnergyWatch, FindsThePowerBetweenTwoSteps) {
  for (const double pace_s : {0.1, 0.02, 0.073, 0.11}) {
    Counter counter;
    counter.pace_s = pace_s;
    counter.from_s = 0.3;
    const Result<Power> power = counter.watched_by(EnergyWatch(0.4, 0.5), 0.4);
    ASSERT_TRUE(power.is_ok()) << pace_s << ": " << power.status().message();
    EXPECT_NEAR(power->watts, 500, 500 * power->error) << pace_s;
    EXPECT_LT(power->error, 0.03) << pace_s;
    EXPECT_GT(power->error, 0.01) << pace_s;
    EXPECT_LT(counter.looks, 50) << pace_s << ": it was asked all the time";
  }
}

// Begins at many moments: a window that is not aligned to the steps would be off by up to one step.
TEST(EnergyWatch, DoesNotDependOnWhenItBegins) {
  for (double from_s = 1; from_s < 1.2; from_s += 0.0017) {
    const Result<Power> power = Counter{}.watched_by(EnergyWatch(from_s, 0.5), from_s);
    ASSERT_TRUE(power.is_ok());
    EXPECT_NEAR(power->watts, 500, 500 * 0.03) << from_s;
  }
}

// As under load on an H200, where half a second was then not enough.
TEST(EnergyWatch, GoesOnWhereAskingTakesLong) {
  Counter counter;
  counter.asking_s = 0.017;
  const Result<Power> power = counter.watched_by(EnergyWatch(0.4, 0.5), 0.4);
  ASSERT_TRUE(power.is_ok()) << power.status().message();
  EXPECT_NEAR(power->watts, 500, 500 * power->error);
  EXPECT_LE(power->error, 0.03);
  counter.asking_s = 0.09;  // too slow: it reports a large error, and ends
  const Result<Power> poor = counter.watched_by(EnergyWatch(0.4, 0.5), 0.4);
  ASSERT_TRUE(poor.is_ok()) << poor.status().message();
  EXPECT_NEAR(poor->watts, 500, 500 * poor->error);
  EXPECT_GT(poor->error, 0.03);
}

TEST(EnergyWatch, ACounterThatStandsOrGoesBackSaysNothing) {
  Counter counter;
  counter.stands_from_s = 1;
  const Result<Power> few = counter.watched_by(EnergyWatch(0.9, 0.5), 0.9);
  EXPECT_EQ(few.status().code(), Code::kUnavailable);
  EXPECT_NE(few.status().message().find("the energy counter moved 1 times in 1."),
            std::string::npos)
      << few.status().message();
  counter.stands_from_s = 0;
  EXPECT_EQ(counter.watched_by(EnergyWatch(0.9, 0.5), 0.9).status().code(), Code::kUnavailable);

  EnergyWatch back(0, 0.1);
  for (int i = 0; back.next_s() && i < 100; ++i) back.saw({i * 0.1, i * 0.1 + 0.01, 100.0 - i});
  EXPECT_EQ(back.power().status().message(), "the energy counter went backwards");
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
  EXPECT_EQ(device.last.samples, 50) << "batches of 100 ms";
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
  EXPECT_EQ(device.last.samples, 500);
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
