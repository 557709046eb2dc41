// SPDX-License-Identifier: Apache-2.0
#include "fleet/service.h"

#include "base/text.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

// Whether "127.0.0.1:8717", "[::1]:8717" or "localhost:8717" was asked for. Without tokens a page
// in a browser could reach this server by a name of its own that resolves to this machine; it
// cannot send another Host than that name.
bool is_plain_host(std::string_view host) {
  if (starts_with(host, "[")) return true;
  host = host.substr(0, std::min(host.rfind(':'), host.size()));
  return host == "localhost" || (!host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
           return c == '.' || (c >= '0' && c <= '9');
         }));
}

}  // namespace

std::optional<HttpAnswer> Service::refuse(const HttpHead& head) {
  std::optional<HttpAnswer> refusal = check(head);
  if (refusal) {
    HttpHead unread = head;
    unread.body_bytes = 0;
    note(unread, "refused", *refusal, 0);
  }
  return refusal;
}

std::optional<HttpAnswer> Service::check(const HttpHead& head) {
  const Result<Route> route = parse_route(head.method, head.target);
  if (route.is_ok() && route->action == Action::kHealth) return std::nullopt;
  if (options_.tokens.empty() && !is_plain_host(head.header("host")))
    return error_answer(421, "without tokens this server is asked for by its address alone");
  const Tokens::Holder holder = options_.tokens.find(head.header("authorization"));
  if (holder.access == Access::kNone) {
    HttpAnswer answer = error_answer(401, head.header("authorization").empty()
                                              ? "this server wants a token"
                                              : "this server does not know that token");
    answer.headers.emplace_back("WWW-Authenticate", "Bearer");
    return answer;
  }
  if (!route.is_ok()) return error_answer(route.status());
  if (is_write(route->action) && holder.access != Access::kWrite)
    return error_answer(403, fmt::format("the token '{}' may read, not write", holder.name));
  return std::nullopt;
}

HttpAnswer Service::answer(const HttpHead& head, const std::string& body) {
  const std::int64_t begin = clock_.monotonic_ns();
  const Result<Route> route = parse_route(head.method, head.target);
  HttpAnswer answer;
  if (!route.is_ok()) {
    answer = error_answer(route.status());
  } else if (route->action == Action::kHealth) {
    answer.body = "{\"schema\": \"purlin.health/1\", \"status\": \"ok\"}\n";
  } else if (route->action == Action::kMetrics) {
    answer.content_type = "text/plain; version=0.0.4";
    answer.body = metrics();
  } else {
    answer = caches_.answer(*route, head, body);
  }
  note(head, route.is_ok() ? action_name(route->action) : "refused", answer,
       static_cast<double>(clock_.monotonic_ns() - begin) / 1e9);
  return answer;
}

std::string Service::metrics() const {
  std::string text = metrics_.text();
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    text += RequestMetrics::single(name, "gauge", help, static_cast<double>(value));
  };
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    text += RequestMetrics::single(name, "counter", help, static_cast<double>(value));
  };
  gauge("purlin_cache_stored_bytes", "Bytes of all segments.", caches_.stored_bytes());
  gauge("purlin_cache_quota_bytes", "What they may have; 0: no limit.",
        caches_.options().quota_bytes);
  if (!counts_) return text;
  const HttpServerCounts counts = counts_();
  gauge("purlin_http_connections", "Connections that are open.", counts.open);
  gauge("purlin_http_buffered_bytes", "Bodies and answers held.", counts.buffered_bytes);
  counter("purlin_http_accepted_total", "Connections ever.", counts.accepted);
  counter("purlin_http_malformed_total", "Requests that were none, or too large.",
          counts.malformed);
  counter("purlin_http_overloaded_total", "Requests refused for want of room.", counts.overloaded);
  return text;
}

void Service::note(const HttpHead& head, std::string_view kind, const HttpAnswer& answer,
                   double seconds) {
  metrics_.count(kind, answer.status, seconds, head.body_bytes, answer.body.size());
  if (answer.status >= 500)
    log_.warn("{} {} {}: {} {}", head.peer, head.method, head.target, answer.status,
              trim(answer.body));
  else if (options_.log_requests)
    log_.info("{} {} {}: {} {} B in, {} B out, {:.1f} ms", head.peer, head.method, head.target,
              answer.status, head.body_bytes, answer.body.size(), seconds * 1e3);
}

}  // namespace purlin::fleet
