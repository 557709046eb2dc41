// SPDX-License-Identifier: Apache-2.0
// Compare: the verdict on two arms. `guard compare` and every step of a bisection use it. `guard
// check` does the same with a baseline's sources as one arm.
//
// Thread-safety: belongs to one thread. Failure: a Status when an arm cannot be prepared, or the
// tool or machine cannot continue. The journal, if there is one, keeps the pairs until then.
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
  std::string filter;  // an fnmatch pattern for the items' texts; "" = all
  // The difference of the arms, which is the cause of a difference in time and cycles: "code",
  // "config", "environment variables", ….
  std::string cause;
  Environment environment;
  std::string journal;  // path; "" = a killed comparison starts again
  PairsOptions options;
  Random& random;
  Clock& clock;
  // All items are invalid when the record of the environment's device is incomplete.
  bool needs_record = false;
  std::string profiles = {};  // folder for profiles of regressions; "" = take none
};

// Prepares both arms, pairs up their items, runs the gate. An item that only one arm has is
// inconclusive; no common item is kInvalid.
Result<Report> compare(const CompareSetup& setup);

}  // namespace purlin::guard
