// SPDX-License-Identifier: Apache-2.0
// Evidence: on a regression, a profile of the kernel before and after, for the reader of the red
// check. Separate launches take the profiles; their times do not count for the verdict.
//
// Thread-safety: one thread (started processes inherit this process's environment). Failure: an
// item without a profile gets a note with the reason. The report gets one when the folder is not
// writable. A missing profile never changes a verdict.
#pragma once

#include "guard/arms/arm.h"
#include "guard/report/report.h"

#include <string>

namespace purlin::guard {

// The number of red checks of one item whose profiles are kept.
inline constexpr std::size_t kKeptProfiles = 10;

// Where the profiles of an item go: DIRECTORY/SUITE-KERNEL-HASH.TIME, with ".before.plprof" or
// ".after.plprof" to follow. The hash separates items of similar names. The time (RFC 3339)
// separates the checks of one item, which sort by it. A name in use gets a number.
std::string profile_stem(const std::string& directory, const std::string& suite, const Item& item,
                         const std::string& time);
// Removes the profiles of the item's checks except the newest `kept`. Other files in the folder
// stay.
Status keep_newest_profiles(const std::string& directory, const std::string& suite,
                            const Item& item, std::size_t kept);

// Takes profiles for the `most` largest slowdowns of the report and names them in the items. Keeps
// the profiles of kKeptProfiles checks per item.
void take_profiles(Report* report, Arm& baseline, Arm& current, const std::string& directory,
                   int most = 5);

}  // namespace purlin::guard
