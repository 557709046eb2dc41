// SPDX-License-Identifier: Apache-2.0
// The endpoints of the fleet's shared backlog: workers take leases on tasks, prolong them, and give
// their results (backlog/leases.h). A lease that was lost is 410: its result does not count.
//
// [MT]; leases and clock outlive them. Failure: as an answer's status.
#pragma once

#include "backlog/leases.h"
#include "base/time.h"
#include "fleet/endpoint.h"

#include <vector>

namespace purlin::fleet {

std::vector<Endpoint> backlog_endpoints(backlog::Leases& leases, Clock& clock);

}  // namespace purlin::fleet
