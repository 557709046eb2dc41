// SPDX-License-Identifier: Apache-2.0
// Route: what a request's method and target ask for (docs/formats/server.md). A pure parser of
// foreign text. Failure: kNotFound (no such path), kInvalid (a path that is known, used wrongly).
#pragma once

#include "base/status.h"

#include <string>
#include <string_view>

namespace purlin::fleet {

enum class Action {
  kHealth,         // GET /healthz
  kMetrics,        // GET /metrics
  kListCaches,     // GET /v1/caches
  kDescribeCache,  // GET /v1/caches/NAME
  kListObjects,    // GET /v1/caches/NAME/objects?folder=segments/&after=KEY
  kGetObject,      // GET /v1/caches/NAME/objects/KEY
  kPutObject,      // PUT, with If-None-Match: * or If-Match: TAG
  kDeleteObject,   // DELETE
};

// "get_object": for metrics.
std::string_view action_name(Action action);
bool is_write(Action action);

struct Route {
  Action action = Action::kHealth;
  std::string cache{}, key{}, folder{}, after{};
};

Result<Route> parse_route(std::string_view method, std::string_view target);

// Of lower-case letters, digits, '.', '_' and '-', 64 at most, the first no sign.
bool is_cache_name(std::string_view name);

}  // namespace purlin::fleet
