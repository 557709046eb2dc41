// SPDX-License-Identifier: Apache-2.0
// Bisect: which commit made a kernel slower. The gate first shows that the last commit is slower
// than the first; each step measures one commit in randomised pairs against the good one and calls
// it bad when it lost more than half of the slowdown; the gate then confirms the culprit against
// its parent. A commit that cannot be built or run is walked around.
//
// The number of pairs of a step follows from the noise seen in the first comparison, so that a step
// errs once in 2,000. With a journal, a killed bisection goes on where it was. Thread-safety:
// belongs to one thread. Failure: a Status where the tool or machine cannot go on.
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
  // Makes a commit ready to run. kFailed: this commit cannot be tried. `close` is told when its
  // arm is no longer needed.
  std::function<Result<Contender>(const std::string& commit)> open;
  std::function<void(const std::string& commit)> close;
  Design design;
  Thresholds thresholds;
  std::string filter;    // items considered, as fnmatch has it; "" = all
  int pairs = 0;         // of a step; 0 = as the noise asks for
  std::string identity;  // of what is run, beside the commits: for the journal
  std::string journal;   // "" = a killed bisection starts anew
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
  Item item;  // that the search followed: the clearest regression of those asked for
  ItemResult whole;
  std::vector<BisectStep> steps;
  std::string good, bad;                // the last good commit known, the first bad one
  std::vector<std::string> candidates;  // (good, bad]: one, unless commits between were untriable
  bool confirmed = false;               // the gate found the culprit slower than its parent
  ItemResult confirmation;              // pairs = 0 where there are several candidates
  std::string nothing_to_find;  // why, where the last commit is not slower; the rest is then empty
  PairsRecord measurement;      // of all comparisons and steps
  double seconds = 0;
};

Result<Bisection> bisect(const BisectSetup& setup);

// Pairs that a step needs to tell a commit that has all of a slowdown (log ratio `slowdown`) from
// one that has none, when the log ratio of a pair has this standard deviation.
int pairs_for_step(double slowdown, double pair_deviation);

}  // namespace purlin::guard
