// SPDX-License-Identifier: Apache-2.0
// The endpoints that answer questions about a fleet: filters as parameters, answers as JSON with
// their coverage (docs/formats/server.md). Conclusions are those of fleet/analysis, which refuses
// where coverage is too thin.
//
// [MT]; the gate outlives them. Failure: as an answer's status. An answer is bounded: a question
// that selects over kMaxCells cells is refused with what narrows it.
#pragma once

#include "base/time.h"
#include "fleet/api/store_gate.h"
#include "fleet/endpoint.h"

#include <cstddef>
#include <vector>

namespace purlin::fleet {

constexpr std::size_t kMaxCells = 1'000'000;

std::vector<Endpoint> query_endpoints(StoreGate& gate, Clock& clock);

}  // namespace purlin::fleet
