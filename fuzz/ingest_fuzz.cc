// SPDX-License-Identifier: Apache-2.0
// What a stranger sends to a server: bytes as a batch, and a target with a query. A batch that is
// read survives being written and read again, within its bounds; a filter that is read is in order.
#include "fleet/api/query_filter.h"
#include "fleet/endpoint.h"
#include "store/batch.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void try_batch(std::string_view bytes) {
  const purlin::store::Limits limits{.max_bytes = 1 << 20, .max_body_bytes = 1 << 20};
  const purlin::Result<purlin::store::Batch> batch = purlin::store::decode(bytes, limits);
  if (!batch.is_ok()) return;
  for (const purlin::store::BatchRow& row : batch->rows)
    if (row.device >= batch->devices.size() || row.run >= batch->runs.size()) std::abort();
  const purlin::Result<std::string> again = purlin::store::encode(*batch);
  if (!again.is_ok() || !purlin::store::decode(*again).is_ok()) std::abort();
}

void try_query(std::string_view target) {
  purlin::fleet::Endpoints endpoints;
  endpoints.add({.method = "GET",
                 .path = "/v1/query/{name}",
                 .kind = "query",
                 .parameters = purlin::fleet::filter_parameters({{"limit", "integer", ""}})});
  const auto match = endpoints.find("GET", target);
  if (!match.is_ok() || match->endpoint == nullptr) return;
  const auto query = purlin::fleet::parse_query(target, *match->endpoint);
  if (!query.is_ok()) return;
  const std::int64_t now_ns = 1'700'000'000'000'000'000;
  const auto filter = purlin::fleet::parse_filter(*query, now_ns);
  if (filter.is_ok() && filter->begin_ns >= filter->end_ns) std::abort();
  (void)purlin::fleet::parse_limit(purlin::fleet::value_of(*query, "limit"), 1, 100);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_batch(text);
  try_query(text);
  return 0;
}
