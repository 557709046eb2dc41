// SPDX-License-Identifier: Apache-2.0
// The endpoint that takes the batches of nodes (raw profiles: fleet/api/raw_api.h).
// [MT]; the gate and the requested windows outlive it. Failure: as an answer's status
// (docs/formats/server.md).
#pragma once

#include "base/time.h"
#include "fleet/api/store_gate.h"
#include "fleet/api/window_requests.h"
#include "fleet/endpoint.h"

#include <vector>

namespace purlin::fleet {

// `windows`: the answer to a batch says whether one is requested of its node; nullptr: none are.
std::vector<Endpoint> ingest_endpoints(StoreGate& gate, Clock& clock,
                                       const WindowRequests* windows = nullptr);

}  // namespace purlin::fleet
