// SPDX-License-Identifier: Apache-2.0
#include "fleet/service.h"

#include "base/text.h"
#include "fleet/page_answer.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

// Whether "127.0.0.1:8717", "[::1]:8717" or "localhost:8717" was asked for. Without tokens a page
// in a browser could reach this server by the page's own name, if that resolves to this machine. It
// cannot send another Host than that name.
bool is_plain_host(std::string_view host) {
  if (starts_with(host, "[")) return true;
  host = host.substr(0, std::min(host.rfind(':'), host.size()));
  return host == "localhost" || (!host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
           return c == '.' || (c >= '0' && c <= '9');
         }));
}

// A path that is known, asked for in another way, says which ways there are.
HttpAnswer refusal_of(const HttpHead& head, const Status& status) {
  if (!parse_route("GET", head.target).is_ok()) return error_answer(status);
  HttpAnswer answer = error_answer(405, status.message());
  answer.headers.emplace_back(
      "Allow", parse_route("PUT", head.target).is_ok() ? "GET, HEAD, PUT, DELETE" : "GET, HEAD");
  return answer;
}

}  // namespace

void Service::replace_tokens(Tokens tokens) {
  if (tokens.empty()) return;
  auto replaced = std::make_shared<const Tokens>(std::move(tokens));
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(replaced);
}

std::shared_ptr<const Tokens> Service::tokens() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

std::optional<HttpAnswer> Service::early(const HttpHead& head) {
  if (std::optional<HttpAnswer> page = page_answer(head)) return page;
  const Result<Route> route = parse_route(head.method, head.target);
  std::optional<HttpAnswer> answer = check(head, route);
  const bool health = route.is_ok() && route->action == Action::kHealth;
  if (!answer && !health) return std::nullopt;
  if (!answer) {  // here, to answer while all handlers wait for a disk
    answer.emplace();
    answer->body = "{\"schema\": \"purlin.health/1\", \"status\": \"ok\"}\n";
  }
  return answer;
}

// The refusal, if it is one.
std::optional<HttpAnswer> Service::check(const HttpHead& head, const Result<Route>& route) const {
  if (!route.is_ok() || route->action != Action::kHealth) {
    const std::shared_ptr<const Tokens> tokens = this->tokens();
    if (tokens->empty() && !is_plain_host(head.header("host")))
      return error_answer(421, "without tokens this server is asked for by its address alone");
    const Tokens::Holder holder = tokens->find(head.header("authorization"));
    if (!holder.known()) {
      HttpAnswer answer = error_answer(401, head.header("authorization").empty()
                                                ? "this server wants a token"
                                                : "this server does not know that token");
      answer.headers.emplace_back("WWW-Authenticate", "Bearer");
      return answer;
    }
    if (!route.is_ok()) return refusal_of(head, route.status());
    const Access access = holder.access(route->cache);
    if (access == Access::kNone)
      return error_answer(
          403, route->cache.empty()
                   ? fmt::format("the token '{}' is for some caches alone", holder.name)
                   : fmt::format("the token '{}' is not for '{}'", holder.name, route->cache));
    if (is_write(route->action) && access != Access::kWrite)
      return error_answer(403, fmt::format("the token '{}' may read, not write", holder.name));
  }
  const Result<std::uint64_t> most =
      route->action == Action::kPutObject ? CacheApi::max_bytes(route->key) : std::uint64_t{0};
  if (!most.is_ok()) return error_answer(most.status());
  if (head.body_bytes > *most)
    return error_answer(413, fmt::format("a body may have {} bytes here", *most));
  return std::nullopt;
}

HttpAnswer Service::answer(const HttpHead& head, const std::string& body) {
  const Result<Route> route = parse_route(head.method, head.target);
  if (!route.is_ok()) return error_answer(route.status());
  if (route->action != Action::kMetrics) return caches_.answer(*route, head, body);
  HttpAnswer answer;
  answer.body = metrics();
  answer.content_type = "text/plain; version=0.0.4";
  if (wants_openmetrics(head.header("accept"))) {
    answer.content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    answer.body = to_openmetrics(answer.body);
  }
  return answer;
}

void Service::answered(const HttpHead& head, const HttpAnswer& answer,
                       std::optional<double> seconds) {
  const Result<Route> route = parse_route(head.method, head.target);
  const bool named = route.is_ok() && (seconds || route->action == Action::kHealth);
  const std::size_t sent = head.method == "HEAD" ? 0 : answer.body.size();
  metrics_.count(named ? action_name(route->action) : "refused", answer.status, seconds,
                 seconds ? head.body_bytes : 0, sent);
  log(head, answer, seconds.value_or(0), sent);
}

std::string Service::metrics() const {
  std::string text = build_info() + metrics_.text();
  const auto gauge = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    text += RequestMetrics::single(name, "gauge", help, static_cast<double>(value));
  };
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    text += RequestMetrics::single(name, "counter", help, static_cast<double>(value));
  };
  gauge("purlin_cache_stored_bytes", "Bytes of all objects, of all caches.",
        caches_.stored_bytes());
  gauge("purlin_cache_quota_bytes", "What they may have; 0: no limit.",
        caches_.options().quota_bytes);
  if (!counts_) return text;
  const HttpServerCounts counts = counts_();
  gauge("purlin_http_connections", "Connections that are open.", counts.open);
  gauge("purlin_http_buffered_bytes", "Bodies and answers held.", counts.buffered_bytes);
  counter("purlin_http_accepted_total", "Connections ever.", counts.accepted);
  counter("purlin_http_malformed_total", "Requests that were none, or too large.",
          counts.malformed);
  counter("purlin_http_overloaded_total", "Requests refused because room was missing.",
          counts.overloaded);
  return text;
}

void Service::log(const HttpHead& head, const HttpAnswer& answer, double seconds,
                  std::size_t sent) {
  if (answer.status < 500 && !log_requests_ && !on_request_) return;
  const std::string name = tokens()->find(head.header("authorization")).name;
  if (on_request_)
    on_request_(Json::object({{"peer", head.peer},
                              {"client", name},
                              {"method", head.method},
                              {"target", head.target},
                              {"status", answer.status},
                              {"received_bytes", head.body_bytes},
                              {"sent_bytes", sent},
                              {"answer_s", seconds}}));
  if (answer.status < 500 && !log_requests_) return;
  const std::string who = fmt::format("{} ({})", head.peer, name.empty() ? "unknown" : name);
  const std::string what =
      head.method.empty() ? "(no request)" : fmt::format("{} {}", head.method, head.target);
  if (answer.status >= 500)
    log_.warn("{} {}: {} {}", who, what, answer.status, trim(answer.body));
  else
    log_.info("{} {}: {} {} B in, {} B out, {:.1f} ms", who, what, answer.status, head.body_bytes,
              sent, seconds * 1e3);
}

}  // namespace purlin::fleet
