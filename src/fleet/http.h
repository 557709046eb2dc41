// SPDX-License-Identifier: Apache-2.0
// HttpHandler: what a server does with a request. The seam between the network (fleet/http_server)
// and what is served (fleet/service).
//
// A request comes in two steps, so that one that is refused costs no more than its head: `early`
// sees the head before the body is read, and may answer; else `answer` has both. What is sent in
// the end, which may be an answer of the server's own, `answered` sees, once for each request.
// Thread-safety: all are called by several threads at once, `early` and `answered` by those of the
// network: they must not wait for anything but their own log. None may throw.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::fleet {

struct HttpHead {
  std::string method;                                          // as sent: "GET"
  std::string target;                                          // path and query, not decoded
  std::vector<std::pair<std::string, std::string>> headers{};  // names in lower case
  std::uint64_t body_bytes = 0;                                // what its body will have
  std::string peer{};                                          // "10.0.0.7"

  // "" where absent; the first one where there are several.
  std::string_view header(std::string_view lower_case_name) const {
    for (const auto& [name, value] : headers)
      if (name == lower_case_name) return value;
    return {};
  }
};

struct HttpAnswer {
  int status = 200;
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string content_type = "application/json";
  // An answer that goes on after its body: asked several times a second for what to send next. "":
  // nothing new; none: the end. By one thread at a time; it must not wait.
  std::function<std::optional<std::string>()> more{};
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual std::optional<HttpAnswer> early(const HttpHead& head) = 0;
  virtual HttpAnswer answer(const HttpHead& head, const std::string& body) = 0;
  // Before it is sent. `seconds` since the request's last byte, none where `answer` was not asked.
  // Without a readable head, `head` is empty except for the peer.
  virtual void answered(const HttpHead& head, const HttpAnswer& answer,
                        std::optional<double> seconds) = 0;
};

}  // namespace purlin::fleet
