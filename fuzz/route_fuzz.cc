// SPDX-License-Identifier: Apache-2.0
// What clients ask a server for: whatever the text, a route never leads out of its cache's folder.
#include "blobs/blob_store.h"
#include "fleet/route.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* method : {"GET", "PUT"}) {
    const auto route = purlin::fleet::parse_route(method, text);
    if (!route.is_ok()) continue;
    if (!route->cache.empty() && !purlin::fleet::is_cache_name(route->cache)) std::abort();
    if (!route->key.empty() && !purlin::blobs::check_key(route->key).is_ok()) std::abort();
    if (route->folder.find("..") != std::string::npos &&
        !purlin::blobs::check_key(route->folder.substr(0, route->folder.size() - 1)).is_ok())
      std::abort();
  }
  return 0;
}
