// SPDX-License-Identifier: Apache-2.0
// The endpoints that take a node's data: batches, and raw profiles under their content address.
// [MT]; gate and blobs outlive them. Failure: as an answer's status (docs/formats/server.md).
#pragma once

#include "base/time.h"
#include "fleet/api/store_gate.h"
#include "fleet/endpoint.h"

#include <string>
#include <vector>

namespace purlin::fleet {

struct RawFolder {
  std::string directory;                              // its objects have the keys of store/raws.h
  std::uint64_t max_bytes = std::uint64_t{64} << 20;  // of one
};

std::vector<Endpoint> ingest_endpoints(StoreGate& gate, Clock& clock);
std::vector<Endpoint> raw_endpoints(const RawFolder& raws);

}  // namespace purlin::fleet
