// SPDX-License-Identifier: Apache-2.0
// CounterWorker: hardware counters of candidates, read in a separate worker process.
//
// CUPTI slows every later launch of a process whose counters it has read, so the worker that times
// never reads them. This worker starts with the first request, holds the arguments a second time,
// and uses the binaries that were compiled already. If the counters cannot be read, the search goes
// on without them: the evaluation keeps the facts of the compiled kernel. Thread-safety: one thread
// at a time, except for problem().
#pragma once

#include "measure/worker.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace purlin::tune {

class CounterWorker {
 public:
  // The device is the one that `setup` names, already known as `device`.
  // `stop`, which outlives it, ends a reading early; it may be nullptr.
  CounterWorker(const measure::WorkerSetup& setup, const DeviceInfo& device, double timeout_s,
                const std::atomic<bool>* stop);

  // Adds the counters, and what they took, to an evaluation that went well. Does nothing once it is
  // known that there are none.
  void read(Evaluation& evaluation, const measure::Policy& policy);
  // Why none are read any more; "" = they are, or were not asked for.
  std::string problem() const;

 private:
  void give_up(std::string why);

  measure::WorkerSetup setup_;
  const double timeout_s_;
  const std::atomic<bool>* const stop_;
  const bool may_have_;  // the kind of device
  int failures_ = 0;     // in a row
  std::unique_ptr<measure::Worker> worker_;
  mutable std::mutex mutex_;  // of problem_
  std::string problem_;
};

}  // namespace purlin::tune
