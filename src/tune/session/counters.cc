// SPDX-License-Identifier: Apache-2.0
#include "tune/session/counters.h"

#include "base/time.h"

#include <algorithm>
#include <utility>

namespace purlin::tune {
namespace {

constexpr int kCounterPatience = 3;  // configs in a row that could not be counted
// It has run before: some launches, and what CUPTI takes when it starts.
constexpr double kStartS = 30, kLaunches = 20;

}  // namespace

CounterWorker::CounterWorker(const measure::WorkerSetup& setup, const DeviceInfo& device,
                             double timeout_s, const std::atomic<bool>* stop)
    : setup_(setup), timeout_s_(timeout_s), stop_(stop), may_have_(device.backend == "cuda") {
  setup_.device = device.id;
  setup_.verify = false;  // it was verified where it was timed
  setup_.on_phase = nullptr;
}

std::string CounterWorker::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void CounterWorker::give_up(std::string why) {
  worker_.reset();
  const std::lock_guard lock(mutex_);
  problem_ = std::move(why);
}

void CounterWorker::read(Evaluation& evaluation, const measure::Policy& policy) {
  if (!problem().empty()) return;
  if (!may_have_) return give_up("hardware counters are read on CUDA devices only");
  const std::int64_t start_ns = system_clock().monotonic_ns();
  Result<std::map<std::string, double>> counted = std::map<std::string, double>();
  if (worker_ == nullptr) {
    Result<std::unique_ptr<measure::Worker>> started = measure::Worker::start(setup_, false, stop_);
    if (started.is_ok())
      worker_ = std::move(*started);
    else
      counted = Status(Code::kUnavailable,
                       "a second worker cannot be started: " + started.status().message());
  }
  const double timeout_s = std::min(timeout_s_, kStartS + kLaunches * 1e-3 * evaluation.time_ms);
  if (worker_ != nullptr) counted = worker_->count(evaluation.config, policy, timeout_s);
  const double took_s = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
  evaluation.counters_s += took_s;
  evaluation.cost_s += took_s;
  if (counted.is_ok()) {
    failures_ = 0;
    for (const auto& [name, value] : *counted) evaluation.counters[name] = value;
  } else if (counted.status().code() == Code::kUnavailable || ++failures_ == kCounterPatience) {
    give_up(counted.status().message());
  }
}

}  // namespace purlin::tune
