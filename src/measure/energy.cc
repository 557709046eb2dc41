// SPDX-License-Identifier: Apache-2.0
#include "measure/energy.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <utility>

namespace purlin::measure {
namespace {

constexpr double kSettleS = 0.2;  // power follows the load with a delay, its reading with another
// Of launches queued at once. Reading the counter without a pause delays the next launches: with
// 20 ms the device was idle for 15 % of the time.
constexpr double kChunkMs = 100;
constexpr int kMaxSamples = 4096;
constexpr double kPauseS = 0.001;  // between two looks for a step
// The longest wait for a step: several times the counter's period (100 ms on an H200).
constexpr double kPatienceS = 0.5;
// The readings for the second step begin so long before it is due. It is due then if the counter
// moves regularly and the requested time is a multiple of its period.
constexpr double kAheadS = 0.015;
// The wanted error, and the limit of the wait for it as a multiple of the requested time: on a busy
// host a reading can take long.
constexpr double kWanted = 0.03, kMaxTimes = 4;

double seconds_of(Clock& clock) { return static_cast<double>(clock.monotonic_ns()) * 1e-9; }

// Reads the counter when the watch requires it, on a separate thread: a reading takes as long as
// many launches, and the device must not wait for it.
class Meter {
 public:
  Meter(gpu::Device& device, EnergyWatch watch, Clock& clock)
      : device_(device), clock_(clock), watch_(std::move(watch)), thread_([this] { look(); }) {}
  ~Meter() { join(); }
  bool done() const { return done_; }
  Result<Power> power() {
    join();
    PURLIN_TRY(problem_);
    return watch_.power();
  }

 private:
  void join() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void look() {
    while (!stopped_ && problem_.is_ok()) {
      const std::optional<double> next_s = watch_.next_s();
      if (!next_s) break;
      const double wait_s = *next_s - seconds_of(clock_);
      if (wait_s > 0) clock_.sleep_ns(static_cast<std::int64_t>(wait_s * 1e9));
      EnergyReading reading;
      reading.asked_s = seconds_of(clock_);
      const Result<double> mj = device_.energy_mj();
      reading.answered_s = seconds_of(clock_);
      problem_ = mj.status();
      if (!mj.is_ok()) break;
      reading.mj = *mj;
      watch_.saw(reading);
    }
    done_ = true;
  }

  gpu::Device& device_;
  Clock& clock_;
  EnergyWatch watch_;  // the thread's own until it is joined, as the next
  Status problem_;
  std::atomic<bool> stopped_{false}, done_{false};
  std::thread thread_;  // last: it uses the rest
};

gpu::TimingRequest batches_of(const gpu::Device& device, const Timing& timing) {
  gpu::TimingRequest request;
  request.launches_per_sample = timing.launches_per_sample;
  request.graph = timing.launches_per_sample > 1 && device.has_graphs();
  const double sample_ms = std::max(median_ms(timing.samples) * timing.launches_per_sample, 1e-3);
  request.samples =
      static_cast<int>(std::clamp(std::ceil(kChunkMs / sample_ms), 1.0, double{kMaxSamples}));
  return request;
}

}  // namespace

std::optional<double> EnergyWatch::next_s() const {
  if (over_) return std::nullopt;
  if (before_) return looked_s_ + kPauseS;
  return steps_.empty() ? from_s_ : steps_.front().at_s + seconds_ - kAheadS;
}

void EnergyWatch::saw(const EnergyReading& reading) {
  looked_s_ = reading.answered_s;
  if (!before_) looking_since_s_ = reading.asked_s;
  if (!before_ || reading.mj == before_->mj) {
    before_ = reading;
    over_ = reading.answered_s - looking_since_s_ > kPatienceS;
    return;
  }
  // It stood when the one was asked for and had moved when the other was answered.
  const Step step{(before_->asked_s + reading.answered_s) / 2,
                  (reading.answered_s - before_->asked_s) / 2, reading.mj};
  looking_since_s_ = reading.asked_s;
  before_ = reading;
  if (steps_.empty()) {
    steps_.push_back(step);
    before_.reset();  // it is left alone now
    return;
  }
  const double span_s = step.at_s - steps_.front().at_s;
  // One that came too early, after a pace that does not divide the time asked for.
  if (span_s < seconds_ - kAheadS) return;
  steps_.resize(1);
  steps_.push_back(step);
  over_ = (steps_.front().within_s + step.within_s) / span_s <= kWanted ||
          span_s > kMaxTimes * seconds_;
}

Result<Power> EnergyWatch::power() const {
  if (steps_.size() < 2)
    return error(Code::kUnavailable, "the energy counter moved {} times in {:.2f} s under load",
                 steps_.size(), std::max(0.0, looked_s_ - from_s_));
  const Step &first = steps_.front(), &last = steps_.back();
  const double span_s = last.at_s - first.at_s;
  if (!(last.mj > first.mj) || span_s <= 0)
    return error(Code::kUnavailable, "the energy counter went backwards");
  return Power{(last.mj - first.mj) * 1e-3 / span_s, (first.within_s + last.within_s) / span_s};
}

Result<Energy> measure_energy(gpu::Device& device, const gpu::Launch& launch, const Timing& timing,
                              double seconds, const Restore& restore, Clock& clock) {
  PURLIN_TRY(device.energy_mj().status());
  const gpu::TimingRequest request = batches_of(device, timing);
  const double begun_s = seconds_of(clock), settled_s = begun_s + kSettleS;
  Meter meter(device, EnergyWatch(settled_s, seconds), clock);
  gpu::Busy all, before;  // before: until the power had settled
  const auto note = [&](const gpu::Busy& so_far) {
    if (seconds_of(clock) < settled_s || before.launches > 0) return;
    before = so_far;
  };
  do {  // in one go; a kernel that spoils its arguments has to stop for them each time
    if (restore) PURLIN_TRY(restore());
    PURLIN_ASSIGN(const gpu::Busy busy,
                  device.keep_busy(launch, request, [&](const gpu::Busy& so_far) {
                    if (!restore) note(so_far);
                    return !restore && !meter.done();
                  }));
    all = restore ? gpu::Busy{all.launches + busy.launches, all.busy_s + busy.busy_s,
                              seconds_of(clock) - begun_s}
                  : busy;
    if (restore) note(all);
  } while (!meter.done());
  const Result<Power> power = meter.power();
  if (!power.is_ok()) return power.status().with_context(device.info().id);
  if (before.launches == all.launches) before = {};  // a kernel that takes as long as all this
  const double busy_s = all.busy_s - before.busy_s, elapsed_s = all.elapsed_s - before.elapsed_s;
  Energy energy;
  energy.power_w = power->watts;
  // As long as launches took meanwhile: under a lasting load a device may hold its clock down.
  energy.energy_mj = power->watts * busy_s / (all.launches - before.launches) * 1e3;
  // In pauses between batches the device draws less.
  energy.error = power->error + std::clamp(1 - busy_s / elapsed_s, 0.0, 1.0);
  return energy;
}

}  // namespace purlin::measure
