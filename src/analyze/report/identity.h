// SPDX-License-Identifier: Apache-2.0
// Identity: names of a profile and of a report's row that other documents and links can hold. The
// same profile has the same id in every file. A row has the same id in every report of one
// grouping, at any rank. Pure functions.
#pragma once

#include "analyze/report/report.h"
#include "model/profile/profile.h"

#include <string>

namespace purlin::analyze {

// 16 hexadecimal digits, of what was recorded: source, command, processes, kernels and their time.
std::string profile_id(const Profile& profile);
// 12 hexadecimal digits, of what makes a row of that grouping.
std::string row_id(const KernelStat& kernel, GroupBy group_by);

}  // namespace purlin::analyze
