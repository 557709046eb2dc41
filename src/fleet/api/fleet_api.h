// SPDX-License-Identifier: Apache-2.0
// The endpoints about the state of a fleet: nodes, guard runs, and the store itself.
//
// [MT]; the gate outlives them. Documents are foreign: their size and depth are bounded. Failure:
// as an answer's status.
#pragma once

#include "base/time.h"
#include "fleet/api/raw_api.h"
#include "fleet/api/store_gate.h"
#include "fleet/endpoint.h"

#include <string>
#include <vector>

namespace purlin::fleet {

std::vector<Endpoint> node_endpoints(StoreGate& gate);
std::vector<Endpoint> guard_endpoints(StoreGate& gate, Clock& clock);
// Scope admin: check, retention, batches in quarantine.
std::vector<Endpoint> store_endpoints(StoreGate& gate, Clock& clock);
struct Retention {
  std::int64_t hours_ns = 0;  // 0: for ever
  store::RawRetention raws;
};
// What is due from time to time: hours become days and months, old hours and raw profiles go. [MT],
// takes as long as it takes.
Status tend_store(StoreGate& gate, RawShelf& raws, const Retention& retention, Clock& clock);
// Counts of the gate, for Prometheus.
std::string store_metrics(const StoreGate& gate);

}  // namespace purlin::fleet
