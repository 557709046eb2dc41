// SPDX-License-Identifier: Apache-2.0
// Pairs: feeds a gate from real processes. Each pair is two process launches, one per arm, back to
// back, in an order that a coin decides; items take turns in random order. That randomisation is
// what makes the gate's test exact, so it is not an option.
//
// Thread-safety: belongs to one thread. Failure: a Status only when the machine or the tool cannot
// go on; a kernel that fails in one arm becomes a verdict.
#pragma once

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "guard/gate.h"
#include "guard/runner.h"

#include <functional>
#include <string>
#include <vector>

namespace purlin::guard {

struct Arms {
  std::string name;  // for progress
  Target baseline, current;
};

struct PairProgress {
  std::string doing;          // "verifying gemm", "screening", "confirming 2 flagged"
  int done = 0, at_most = 0;  // pairs; at_most is what the stage under way may still take
  double seconds = 0, left_s = 0;
};

struct PairsOptions {
  double time_limit_s = 0;  // >0: what is undecided then gets its last look
  std::function<void(const PairProgress&)> progress;
};

// Runs every item that the gate wants until it wants no more. First each arm of each item is
// compiled, verified and run once, unmeasured: an arm that fails then never reaches a pair. A
// failing current arm makes the item invalid; a failing baseline arm alone makes it inconclusive.
Status run_pairs(SuiteGate& gate, const std::vector<Arms>& arms, Runner& runner, Random& random,
                 Clock& clock, const PairsOptions& options);

}  // namespace purlin::guard
