// SPDX-License-Identifier: Apache-2.0
// HttpClient: one request, one bounded answer. The seam between the object store and the network.
//
// A client belongs to one thread and keeps its connections. Failure: kUnavailable (no connection,
// or it broke), kTimeout, kInvalid (a malformed URL, an answer over max_bytes). Any HTTP status is
// an answer, not a failure; redirects are not followed.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::blobs {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method, url;
  HttpHeaders headers;
  std::string_view body;
  double timeout_s = 120;
  bool direct = false;  // through no proxy, also if the environment names one
  std::size_t max_bytes = std::size_t{64} << 20;  // of the answer's body
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;  // names in lower case
  std::string body;
  // "" where absent.
  std::string header(std::string_view lower_case_name) const {
    for (const auto& [name, value] : headers)
      if (name == lower_case_name) return value;
    return "";
  }
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual Result<HttpResponse> send(const HttpRequest& request) = 0;
};

}  // namespace purlin::blobs
