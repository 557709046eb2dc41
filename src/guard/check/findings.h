// SPDX-License-Identifier: Apache-2.0
// Findings: the cached winners of a check, for the backlog (backlog/gate_tasks.h). Pure function.
#pragma once

#include "backlog/gate_tasks.h"
#include "guard/report/report.h"
#include "guard/suite/suite.h"

#include <string>
#include <vector>

namespace purlin::guard {

// `changes` of the environment are the texts of environment_differences().
std::vector<backlog::Task> findings(const Report& report, const Suite& suite,
                                    const DeviceInfo& device,
                                    const std::vector<std::string>& changes);

}  // namespace purlin::guard
