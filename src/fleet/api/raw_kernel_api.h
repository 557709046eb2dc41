// SPDX-License-Identifier: Apache-2.0
// The endpoint that reads a kernel's advice, stalls and counters out of the newest raw profiles
// that hold them. One profile is read at a time, and the last few analyses are kept: a reader goes
// from kernel to kernel.
//
// [MT]; gate and shelf outlive it. Failure: as an answer's status (docs/formats/server.md).
#pragma once

#include "base/time.h"
#include "fleet/api/raw_api.h"
#include "fleet/api/store_gate.h"
#include "fleet/endpoint.h"

#include <vector>

namespace purlin::fleet {

std::vector<Endpoint> raw_kernel_endpoints(RawShelf& shelf, StoreGate& gate, Clock& clock);

}  // namespace purlin::fleet
