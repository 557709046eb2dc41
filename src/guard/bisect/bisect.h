// SPDX-License-Identifier: Apache-2.0
// Bisect: which commit made a kernel slower. First the gate shows that the last commit is slower
// than the first. Each step then measures one commit against the good one, in pairs of random
// order. The commit is bad when it has more than half of the slowdown. At the end the gate compares
// the culprit with its parent. The search skips a commit that cannot be built or run.
//
// The number of pairs of a step follows from the noise of the first comparison: a step errs once in
// 2,000. With a journal, a killed bisection continues. Thread-safety: belongs to one thread.
// Failure: a Status where the tool or machine cannot continue.
#pragma once

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "guard/bisect/search.h"
#include "guard/check/compare.h"
#include "guard/suite/contender.h"

#include <functional>
#include <string>
#include <vector>

namespace purlin::guard {

struct BisectSetup {
  std::vector<std::string> commits;  // in the order of history: the first good, the last bad
  // Makes a commit ready to run. kFailed: this commit cannot be tried. `close` is called once the
  // arm is no longer needed.
  std::function<Result<Contender>(const std::string& commit)> open;
  std::function<void(const std::string& commit)> close;
  Design design;
  Thresholds thresholds;
  std::string filter;    // an fnmatch pattern of the items considered; "" = all
  int pairs = 0;         // of a step; 0 = from the noise
  std::string identity;  // of all inputs other than the commits: for the journal
  std::string journal;   // "" = a killed bisection starts again
  Environment environment;
  PairsOptions options;
  std::function<void(const std::string&)> say;  // one line on each step; may be empty
  Random& random;
  Clock& clock;
};

struct BisectStep {
  std::string commit;
  Probe probe = Probe::kUntried;
  std::string reason;  // why it could not be tried
  Effect effect;       // against the good commit
};

struct Bisection {
  Item item;  // The followed one: the clearest regression of the requested items.
  ItemResult whole;
  std::vector<BisectStep> steps;
  std::string good, bad;                // The last known good commit, the first bad one.
  std::vector<std::string> candidates;  // (good, bad]: one, or several with untriable commits.
  bool confirmed = false;               // The gate found the culprit slower than its parent.
  ItemResult confirmation;              // pairs = 0 with several candidates.
  std::string nothing_to_find;  // Why the last commit is not slower; the rest is then empty.
  PairsRecord measurement;      // Of all comparisons and steps.
  double seconds = 0;
};

Result<Bisection> bisect(const BisectSetup& setup);

// Pairs of a step that separate a commit with all of a slowdown (log ratio `slowdown`) from one
// without it, at this standard deviation of a pair's log ratio.
int pairs_for_step(double slowdown, double pair_deviation);

}  // namespace purlin::guard
