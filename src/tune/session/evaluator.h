// SPDX-License-Identifier: Apache-2.0
// Evaluator: where a session's evaluations are made. On a device through worker processes
// (worker_pool.h), or from a recorded space (replay_evaluator.h).
//
// Thread-safety: one thread at a time, except where stated. Failure: what goes wrong with a config
// is its Evaluation; a Status means that no further evaluation is possible. kCancelled: a request
// to stop, or policy.limit_s, ended it, and nothing is known of the config.
#pragma once

#include "base/status.h"
#include "measure/timing.h"
#include "model/device/device.h"
#include "model/evaluation.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace purlin::tune {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual const DeviceInfo& device() const = 0;
  // False for a recording: a second measurement would tell nothing new, and its cost is what was
  // recorded, not what passes here.
  virtual bool executes() const = 0;
  // How many configs it is worth knowing ahead.
  virtual std::size_t lookahead() const { return 1; }
  // Whether the session's own work (the journal, the model, the next choice) may run during an
  // evaluation without a change of its times. The next one is then handed over meanwhile.
  virtual bool runs_beside() const { return false; }
  // The first of these configs that need not wait for its build; nullopt: none yet. There is one
  // at least. Called on the session's thread, while evaluate() may run on another.
  virtual std::optional<std::size_t> first_built(const std::vector<const Config*>&) { return 0; }
  // The config will be evaluated soon, by this or another evaluator of the session. Called on the
  // session's thread, while evaluate() may run on another.
  virtual void announce(const Config&) {}
  // The search is over: what was announced and not evaluated by now never will be.
  virtual void end_announced() {}
  // Why no hardware counters are read although the policy asked for them. "" = they are read, or
  // were not asked for. May be called while evaluate() runs on another thread.
  virtual std::string counters_problem() const { return ""; }
  virtual Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) = 0;
  // Whether the device is idle while no config is built, so that repeat() may be called then.
  virtual bool repeats() const { return false; }
  // A batch of samples of a config that evaluate() found ok, measure::time_batch: one launch or a
  // few milliseconds. No sample: it was loaded for it.
  virtual Result<Evaluation> repeat(const Config& config, const measure::Policy& policy) {
    return evaluate(config, policy);
  }
};

}  // namespace purlin::tune
