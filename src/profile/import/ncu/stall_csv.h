// SPDX-License-Identifier: Apache-2.0
// Stall samples as CSV: a row per kernel and reason with the number of samples, as PC sampling
// tools write them. docs/formats/import.md, "Stall samples". Pure functions over foreign text.
#pragma once

#include "base/status.h"
#include "model/profile/profile.h"
#include "profile/import/import.h"
#include "profile/import/input.h"

#include <string>
#include <string_view>

namespace purlin::profile {

// By its header: a column for the kernel, one for the reason, one for the samples.
bool looks_like_stall_csv(std::string_view prefix);
// "Stall: Long Scoreboard", "smsp__pcsamp_warps_issue_stalled_long_scoreboard", "memory_dependency"
// -> "long_scoreboard"; "" for samples that a tool counts twice ("…_not_issued").
std::string stall_reason(std::string_view text);
// `name` is what errors call the input.
Result<Profile> import_stall_csv(Input input, const std::string& name,
                                 const ImportOptions& options);

}  // namespace purlin::profile
