// SPDX-License-Identifier: Apache-2.0
// Route: what a request asks of a shared cache (docs/formats/server.md). A pure parser of foreign
// text. Failure: kNotFound (no such path), kInvalid (a path that is known, used wrongly).
#pragma once

#include "base/status.h"

#include <string>
#include <string_view>

namespace purlin::fleet {

enum class Action {
  kListCaches,     // GET /v1/caches
  kDescribeCache,  // GET /v1/caches/NAME
  kListObjects,    // GET /v1/caches/NAME/objects?folder=segments/&after=KEY
  kGetObject,      // GET /v1/caches/NAME/objects/KEY
  kPutObject,      // PUT, with If-None-Match: * or If-Match: TAG
  kDeleteObject,   // DELETE
};

struct Route {
  Action action = Action::kListCaches;
  std::string cache{}, key{}, folder{}, after{};
};

Result<Route> parse_route(std::string_view method, std::string_view target);

// Of lower-case letters, digits, '.', '_' and '-', 64 at most, the first no sign.
bool is_cache_name(std::string_view name);

}  // namespace purlin::fleet
