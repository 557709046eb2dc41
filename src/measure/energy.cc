// SPDX-License-Identifier: Apache-2.0
#include "measure/energy.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace purlin::measure {
namespace {

constexpr double kSettleS = 0.2;  // power follows the load with a delay, and so does its reading
constexpr double kChunkMs = 20;   // of launches queued at once
constexpr int kMostSamples = 4096;
// Longer than the counter takes from step to step (100 ms on an H200), twice.
constexpr double kTailS = 0.25;
// Between two looks. Asking takes 4 ms there, and an H200 that was asked without a pause ran the
// same launches 12 to 50 % slower than when they were timed.
constexpr std::int64_t kPauseNs = 20'000'000;

double seconds_of(Clock& clock) { return static_cast<double>(clock.monotonic_ns()) * 1e-9; }

// Looks at the counter over and over, on a thread of its own: asking takes as long as many launches
// do, and the device must not wait for it.
class Meter {
 public:
  Meter(gpu::Device& device, Clock& clock)
      : device_(device), clock_(clock), thread_([this] { watch(); }) {}
  ~Meter() { static_cast<void>(stop()); }
  // What it saw; the first problem, if there was one.
  Result<std::vector<EnergyReading>> stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
    if (!problem_.is_ok()) return problem_;
    return readings_;
  }

 private:
  void watch() {
    while (!stopped_ && problem_.is_ok()) {
      EnergyReading reading;
      reading.asked_s = seconds_of(clock_);
      const Result<double> mj = device_.energy_mj();
      reading.answered_s = seconds_of(clock_);
      problem_ = mj.status();
      if (!mj.is_ok()) return;
      reading.mj = *mj;
      readings_.push_back(reading);
      clock_.sleep_ns(kPauseNs);
    }
  }

  gpu::Device& device_;
  Clock& clock_;
  std::vector<EnergyReading> readings_;  // the thread's own until it is joined
  Status problem_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;  // last: it uses the rest
};

// Launches in chunks, and what they took.
class Load {
 public:
  Load(gpu::Device& device, const gpu::Launch& launch, const Timing& timing, const Restore& restore,
       Clock& clock)
      : device_(device), launch_(launch), restore_(restore), clock_(clock) {
    request_.launches_per_sample = timing.launches_per_sample;
    request_.graph = timing.launches_per_sample > 1 && device.has_graphs();
    const double sample_ms = std::max(median_ms(timing.samples) * timing.launches_per_sample, 1e-3);
    request_.samples =
        static_cast<int>(std::clamp(std::ceil(kChunkMs / sample_ms), 1.0, double{kMostSamples}));
  }

  Status run_until(double until_s) {
    while (seconds_of(clock_) < until_s) {
      if (restore_) PURLIN_TRY(restore_());
      PURLIN_ASSIGN(const std::vector<Sample> samples, device_.time(launch_, request_));
      for (const Sample& sample : samples)
        busy_s_ += sample.ms * 1e-3 * request_.launches_per_sample;
      launches_ += static_cast<double>(samples.size()) * request_.launches_per_sample;
    }
    return Status::ok();
  }
  void forget() { busy_s_ = launches_ = 0; }
  double busy_s() const { return busy_s_; }
  double launches() const { return launches_; }

 private:
  gpu::Device& device_;
  const gpu::Launch& launch_;
  const Restore& restore_;
  Clock& clock_;
  gpu::TimingRequest request_;
  double busy_s_ = 0, launches_ = 0;
};

}  // namespace

Result<Power> power_of(const std::vector<EnergyReading>& readings, double from_s) {
  struct Step {
    double at_s, within_s, mj;
  };
  std::vector<Step> steps;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const EnergyReading &before = readings[i - 1], &after = readings[i];
    if (after.mj == before.mj || before.asked_s < from_s) continue;
    // It stood when the one was asked for and had moved when the other was answered.
    steps.push_back({(before.asked_s + after.answered_s) / 2,
                     (after.answered_s - before.asked_s) / 2, after.mj});
  }
  if (steps.size() < 2)
    return error(Code::kUnavailable, "the energy counter moved {} times in {:.2f} s under load",
                 steps.size(), readings.empty() ? 0.0 : readings.back().answered_s - from_s);
  const Step &first = steps.front(), &last = steps.back();
  const double span_s = last.at_s - first.at_s;
  if (!(last.mj > first.mj) || span_s <= 0)
    return error(Code::kUnavailable, "the energy counter went backwards");
  return Power{(last.mj - first.mj) * 1e-3 / span_s, (first.within_s + last.within_s) / span_s};
}

Result<Energy> measure_energy(gpu::Device& device, const gpu::Launch& launch, const Timing& timing,
                              double seconds, const Restore& restore, Clock& clock) {
  PURLIN_TRY(device.energy_mj().status());
  Load load(device, launch, timing, restore, clock);
  Meter meter(device, clock);
  PURLIN_TRY(load.run_until(seconds_of(clock) + kSettleS));
  load.forget();
  const double from_s = seconds_of(clock);
  PURLIN_TRY(load.run_until(from_s + seconds + kTailS));
  const double span_s = seconds_of(clock) - from_s;
  PURLIN_ASSIGN(const std::vector<EnergyReading> readings, meter.stop());
  const Result<Power> power = power_of(readings, from_s);
  if (!power.is_ok()) return power.status().with_context(device.info().id);
  Energy energy;
  energy.power_w = power->watts;
  energy.energy_mj = power->watts * load.busy_s() / load.launches() * 1e3;
  // In the pauses between chunks the device draws less; and where launches take longer than when
  // they were timed, it is not known what kept them.
  const double slower = load.busy_s() / load.launches() * 1e3 / median_ms(timing.samples) - 1;
  energy.error =
      power->error + std::clamp(1 - load.busy_s() / span_s, 0.0, 1.0) + std::max(slower, 0.0);
  return energy;
}

}  // namespace purlin::measure
