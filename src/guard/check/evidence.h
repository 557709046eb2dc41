// SPDX-License-Identifier: Apache-2.0
// Evidence: on a regression, a profile of the kernel before and after, so that whoever gets the red
// check can look at both at once. The profiled runs are launches of their own; nothing of them
// counts for the verdict.
//
// Thread-safety: one thread (the processes started inherit this process's environment). Failure: an
// item whose profile cannot be taken gets a note that says why, and so does the report where the
// folder cannot be written to: a verdict is never lost to its evidence.
#pragma once

#include "guard/arms/arm.h"
#include "guard/report/report.h"

#include <string>

namespace purlin::guard {

// How many red checks of one item keep their profiles.
inline constexpr std::size_t kKeptProfiles = 10;

// Where the profiles of an item go: DIRECTORY/SUITE-KERNEL-HASH.TIME, with ".before.plprof" or
// ".after.plprof" to follow. The hash keeps items apart whose names are alike, the time (RFC 3339,
// of the check) one check from the next; those of one item sort by time. A name that is taken gets
// a number.
std::string profile_stem(const std::string& directory, const std::string& suite, const Item& item,
                         const std::string& time);
// Removes the profiles of the item's checks but for the newest `kept`; what else lies in the folder
// is left alone.
Status keep_newest_profiles(const std::string& directory, const std::string& suite,
                            const Item& item, std::size_t kept);

// For each regression of the report, its profiles, named in the item, and no more than
// kKeptProfiles checks of each. At most `most` items, the largest slowdowns.
void take_profiles(Report* report, Arm& baseline, Arm& current, const std::string& directory,
                   int most = 5);

}  // namespace purlin::guard
