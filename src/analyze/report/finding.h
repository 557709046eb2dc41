// SPDX-License-Identifier: Apache-2.0
// Findings: what a report's reader should know first, each in one sentence and from the report's
// own evidence. No advice and no estimates: those are analyze/advise. Pure functions.
#pragma once

#include "analyze/report/report.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct Finding {
  // "idle", "communication", "copies", "kernel", "share", "stall", "nothing".
  std::string_view kind;
  double share = 0;  // of the time analysed, that is at stake; 0 = not known
  std::string text;  // "GPU idle 44% of 1.23 s: data starvation 33%, host launch 8%"
};

// Most at stake first, at least one. A kernel's stake is its distance from its roof. Of a kernel
// without a roof only its share is known: it follows those that are a tenth of its time or more.
std::vector<Finding> find(const Report& report);

}  // namespace purlin::analyze
