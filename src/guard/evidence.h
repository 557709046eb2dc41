// SPDX-License-Identifier: Apache-2.0
// Evidence: on a regression, a profile of the kernel before and after, so that whoever gets the red
// check can look at both at once. The profiled runs are launches of their own; nothing of them
// counts for the verdict.
//
// Thread-safety: one thread (the processes started inherit this process's environment). Failure: an
// item whose profile cannot be taken gets a note that says why, and so does the report where the
// folder cannot be written to: a verdict is never lost to its evidence.
#pragma once

#include "guard/arm.h"
#include "guard/report.h"

#include <string>

namespace purlin::guard {

// For each regression of the report, DIRECTORY/SUITE-KERNEL.{before,after}.plprof, named in the
// item. At most `most` items, the largest slowdowns.
void take_profiles(Report* report, Arm& baseline, Arm& current, const std::string& directory,
                   int most = 5);

}  // namespace purlin::guard
