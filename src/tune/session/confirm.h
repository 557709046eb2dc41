// SPDX-License-Identifier: Apache-2.0
// Confirmation: a winner against the default once more, in fresh processes, before it is stored.
//
// The finals compare configs inside one process; addresses, clocks and what the library chose to
// load are its own, and a lead of a per cent may be theirs. So each of a few new processes measures
// both in turns, and only a winner that is no slower in any of them, and faster in the middle one,
// takes the default's place. A program may find its inputs in another state of the caches than the
// one that was tuned for: where that is asked for, the winner must not lose there either. Belongs
// to one thread. Failure of a process is a problem of the winner only where the winner failed; else
// it is a Status.
#pragma once

#include "base/status.h"
#include "measure/timing.h"
#include "tune/session/evaluator.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace purlin::tune {

struct ConfirmOptions {
  int processes = 3;
  int rounds = 3;   // of both, in turns, in each process
  int samples = 7;  // of each in each round
  double least_gain = 0.005;
  double tolerance = 0;  // a process may show it slower by so much
  // Measured in addition to the policy's inputs. kAsSpec: no additional measurement.
  measure::Policy::Inputs other_inputs = measure::Policy::Inputs::kAsSpec;
  double other_tolerance = 0.005;
};

struct Confirmation {
  std::vector<double> ratios;        // the default's median time over the winner's, by process
  std::vector<double> other_ratios;  // the same with the other inputs
  double median = 0;
  bool holds = false;
  std::string problem;  // why not
};

using FreshEvaluator = std::function<Result<std::unique_ptr<Evaluator>>()>;
// `go_on` is asked before each process. When it says no, or an evaluation was stopped, nothing
// holds.
Result<Confirmation> confirm(const Config& winner, const Config& fallback,
                             const measure::Policy& policy, const ConfirmOptions& options,
                             const FreshEvaluator& fresh, const std::function<bool()>& go_on);

}  // namespace purlin::tune
