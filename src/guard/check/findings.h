// SPDX-License-Identifier: Apache-2.0
// Findings: what a check tells the tuning backlog. A cached winner that became slower is to be
// tuned again; when device, driver or toolkit are no longer those of the baseline, the suite's
// cached winners, which are the keys somebody cares about most, are to be validated. Pure function.
#pragma once

#include "cache/backlog.h"
#include "guard/report/report.h"
#include "guard/suite/suite.h"

#include <string>
#include <vector>

namespace purlin::guard {

// `changes` of the environment, as environment_differences() words them.
std::vector<cache::Task> findings(const Report& report, const Suite& suite,
                                  const DeviceInfo& device,
                                  const std::vector<std::string>& changes);

}  // namespace purlin::guard
