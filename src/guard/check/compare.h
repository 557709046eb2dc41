// SPDX-License-Identifier: Apache-2.0
// Compare: two arms, judged. The whole of `guard compare` and of every step of a bisection; `guard
// check` is the same with a baseline's sources as one arm.
//
// Thread-safety: belongs to one thread. Failure: a Status when an arm cannot be made ready, or the
// tool or machine cannot go on; what happened until then is in the journal, if there is one.
#pragma once

#include "base/random.h"
#include "base/time.h"
#include "guard/arms/arm.h"
#include "guard/arms/pairs.h"
#include "guard/report/report.h"

#include <functional>
#include <string>

namespace purlin::guard {

struct CompareSetup {
  std::string name;  // of the comparison, in reports
  Arm& baseline;
  Arm& current;
  Design design;
  std::function<Thresholds(const Item&)> thresholds;  // empty: the defaults for all
  std::string filter;  // only items whose text matches, as fnmatch has it; "" = all
  // What A and B differ in, so what a difference in time and cycles is due to: "code", "config",
  // "environment variables", ….
  std::string cause;
  Environment environment;
  std::string journal;  // path; "" = a killed comparison starts anew
  PairsOptions options;
  Random& random;
  Clock& clock;
  // All items are invalid where the environment's device lacks what a reader must know of it.
  bool needs_record = false;
  std::string profiles = {};  // folder for profiles of what became slower; "" = none are taken
};

// Prepares both arms, pairs up their items, runs the gate. An item that only one arm has is
// inconclusive; no common item is kInvalid.
Result<Report> compare(const CompareSetup& setup);

}  // namespace purlin::guard
