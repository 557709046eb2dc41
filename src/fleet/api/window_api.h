// SPDX-License-Identifier: Apache-2.0
// The endpoints of requested windows: a person asks, the node's collector takes and reports
// (docs/design/window-requests.md).
//
// [MT]; requests, shelf and clock outlive them. Failure: as an answer's status.
#pragma once

#include "base/time.h"
#include "fleet/api/raw_api.h"
#include "fleet/api/window_requests.h"
#include "fleet/endpoint.h"

#include <vector>

namespace purlin::fleet {

std::vector<Endpoint> window_endpoints(WindowRequests& requests, RawShelf& shelf, Clock& clock);

}  // namespace purlin::fleet
