// SPDX-License-Identifier: Apache-2.0
// The endpoint that takes the batches of nodes (raw profiles: fleet/api/raw_api.h).
// [MT]; the gate outlives it. Failure: as an answer's status (docs/formats/server.md).
#pragma once

#include "base/time.h"
#include "fleet/api/store_gate.h"
#include "fleet/endpoint.h"

#include <vector>

namespace purlin::fleet {

std::vector<Endpoint> ingest_endpoints(StoreGate& gate, Clock& clock);

}  // namespace purlin::fleet
