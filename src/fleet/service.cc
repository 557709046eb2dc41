// SPDX-License-Identifier: Apache-2.0
#include "fleet/service.h"

#include "base/text.h"
#include "fleet/answers.h"
#include "fleet/page_answer.h"

#include <algorithm>
#include <cmath>

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

// Whether a page of another site asks for a change. A browser sends such a request without a
// question first, where it has no token.
bool is_of_another_site(const HttpHead& head) {
  const std::string_view origin = head.header("origin"), host = head.header("host");
  if (origin.empty() || plain_method(head.method) == "GET") return false;
  const std::size_t scheme = origin.find("://");
  return scheme == origin.npos || origin.substr(scheme + 3) != host;
}

bool is_write_scope(Scope scope) { return scope == Scope::kWrite || scope == Scope::kAdmin; }

HttpAnswer health() {
  HttpAnswer answer;
  answer.body = "{\"schema\": \"purlin.health/1\", \"status\": \"ok\"}\n";
  return answer;
}

HttpAnswer unknown_token(bool without) {
  HttpAnswer answer = error_answer(
      401, without ? "this server wants a token" : "this server does not know that token");
  answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

HttpAnswer come_back(int status, std::string_view message, double seconds) {
  HttpAnswer answer = error_answer(status, message);
  answer.headers.emplace_back(
      "Retry-After", std::to_string(std::clamp(std::llround(std::ceil(seconds)), 1ll, 600ll)));
  return answer;
}

// "read", "write"
std::vector<std::string> names_of(unsigned scopes) {
  std::vector<std::string> names;
  for (const Scope scope : kScopes)
    if ((scopes & static_cast<unsigned>(scope)) != 0) names.emplace_back(scope_name(scope));
  return names;
}

// Holds a place among the queries under way.
class QueryPlace {
 public:
  QueryPlace(std::atomic<int>& queries, int most)
      : queries_(queries), got_(queries.fetch_add(1) < most) {}
  ~QueryPlace() { queries_.fetch_sub(1); }
  QueryPlace(const QueryPlace&) = delete;
  QueryPlace& operator=(const QueryPlace&) = delete;
  bool got() const { return got_; }

 private:
  std::atomic<int>& queries_;
  const bool got_;
};

}  // namespace

Service::Service(ServiceOptions options, std::vector<Endpoint> endpoints, Log& log, AuditLog* audit,
                 Clock& clock)
    : tokens_(std::make_shared<const Tokens>(std::move(options.tokens))),
      log_requests_(options.log_requests),
      on_request_(std::move(options.on_request)),
      max_queries_(options.max_queries),
      log_(log),
      audit_(audit),
      clock_(clock) {
  endpoints_.add({.method = "GET",
                  .path = "/healthz",
                  .scope = Scope::kNone,
                  .kind = "health",
                  .summary = "Whether the server runs",
                  .answer = "purlin.health/1",
                  .handle = [](const Request&) { return health(); }});
  endpoints_.add({.method = "GET",
                  .path = "/metrics",
                  .kind = "metrics",
                  .summary = "Metrics for Prometheus",
                  .answer = "",
                  .handle = [this](const Request& request) {
                    HttpAnswer answer;
                    answer.body = metrics();
                    answer.content_type = "text/plain; version=0.0.4";
                    if (wants_openmetrics(request.head.header("accept"))) {
                      answer.content_type =
                          "application/openmetrics-text; version=1.0.0; charset=utf-8";
                      answer.body = to_openmetrics(answer.body);
                    }
                    return answer;
                  }});
  endpoints_.add({.method = "GET",
                  .path = "/v1/access",
                  .kind = "access",
                  .summary = "What the token of the request may do",
                  .answer = "purlin.access/1",
                  .handle = [this](const Request& request) { return access(request); }});
  endpoints_.add({.method = "GET",
                  .path = "/v1/openapi.json",
                  .kind = "openapi",
                  .summary = "This description",
                  .answer = "OpenAPI 3.0.3",
                  .handle = [this](const Request&) { return json_answer(endpoints_.openapi()); }});
  endpoints_.add(std::move(endpoints));
}

HttpAnswer Service::access(const Request& request) const {
  const Tokens::Holder holder = tokens()->find(request.head.header("authorization"));
  Json json = answer_document("purlin.access/1");
  json.set("holder", holder.name);
  json.set("scopes", Json::array_of(names_of(holder.scopes(""))));
  return json_answer(json);
}

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
  const Result<Endpoints::Match> match = endpoints_.find(head.method, head.target);
  if (std::optional<HttpAnswer> refused = check(head, match)) return refused;
  // Here, to answer while all handlers wait for a disk.
  if (match->endpoint->scope == Scope::kNone) return health();
  return std::nullopt;
}

// The refusal, if it is one.
std::optional<HttpAnswer> Service::check(const HttpHead& head,
                                         const Result<Endpoints::Match>& match) {
  const bool open =
      match.is_ok() && match->endpoint != nullptr && match->endpoint->scope == Scope::kNone;
  if (!open)
    if (std::optional<HttpAnswer> refused = check_token(head, match)) return refused;
  const Endpoint& endpoint = *match->endpoint;
  const Result<std::uint64_t> most =
      endpoint.limit ? endpoint.limit(head) : Result<std::uint64_t>(endpoint.max_body);
  if (!most.is_ok()) return error_answer(most.status());
  if (head.body_bytes > *most)
    return error_answer(413, fmt::format("a body may have {} bytes here", *most));
  return std::nullopt;
}

std::optional<HttpAnswer> Service::check_token(const HttpHead& head,
                                               const Result<Endpoints::Match>& match) {
  const std::shared_ptr<const Tokens> tokens = this->tokens();
  if (tokens->empty() && !is_plain_host(head.header("host")))
    return error_answer(421, "without tokens this server is asked for by its address alone");
  if (tokens->empty() && is_of_another_site(head))
    return error_answer(403, "a page of another site may change nothing here");
  const Tokens::Holder holder = tokens->find(head.header("authorization"));
  if (!holder.known()) return unknown_token(head.header("authorization").empty());
  if (!match.is_ok()) return error_answer(match.status());
  if (match->endpoint == nullptr) {
    HttpAnswer answer = error_answer(405, "this path takes " + match->allow);
    answer.headers.emplace_back("Allow", match->allow);
    return answer;
  }
  const std::string& cache = value_of(match->path, "cache");
  const Scope scope = match->endpoint->scope;
  const unsigned scopes = holder.scopes(cache);
  if (scopes == 0)
    return error_answer(
        403, cache.empty() ? fmt::format("the token '{}' is for some caches alone", holder.name)
                           : fmt::format("the token '{}' is not for '{}'", holder.name, cache));
  if (!holder.may(scope, cache))
    return error_answer(403, fmt::format("the token '{}' may {}, not {}", holder.name,
                                         join(names_of(scopes), ", "), scope_name(scope)));
  if (holder.limits.max_body > 0 && head.body_bytes > holder.limits.max_body)
    return error_answer(413, fmt::format("a body of the token '{}' may have {} bytes", holder.name,
                                         holder.limits.max_body));
  const double wait_s = limiter_.take(holder, head.body_bytes, clock_.monotonic_ns());
  if (wait_s <= 0) return std::nullopt;
  limited_.fetch_add(1);
  return come_back(429, fmt::format("the token '{}' asks for more than its limit", holder.name),
                   wait_s);
}

HttpAnswer Service::answer(const HttpHead& head, const std::string& body) {
  Result<Endpoints::Match> match = endpoints_.find(head.method, head.target);
  if (!match.is_ok()) return error_answer(match.status());
  if (match->endpoint == nullptr) return error_answer(405, "this path takes " + match->allow);
  const Endpoint& endpoint = *match->endpoint;
  Result<NamedValues> query = parse_query(head.target, endpoint);
  if (!query.is_ok()) return error_answer(query.status());
  const Request request{head, body, std::move(match.value().path), std::move(query).value(),
                        tokens()->find(head.header("authorization")).name};
  HttpAnswer answer = ask(endpoint, request);
  if (is_write_scope(endpoint.scope)) audit(endpoint, request, answer);
  return answer;
}

HttpAnswer Service::ask(const Endpoint& endpoint, const Request& request) {
  if (!endpoint.is_query) return endpoint.handle(request);
  const QueryPlace place(queries_, max_queries_);
  if (!place.got())
    return come_back(503, "the server answers as many queries as it may; try again", 1);
  return endpoint.handle(request);
}

// The write has happened. Where its line cannot be written, the metrics show it.
void Service::audit(const Endpoint& endpoint, const Request& request, const HttpAnswer& answer) {
  if (audit_ == nullptr) return;
  const Status written = audit_->write({clock_.wall_ns(), request.holder, request.head.peer,
                                        endpoint.kind, request.head.method, request.head.target,
                                        answer.status, request.head.body_bytes});
  if (written.is_ok()) return;
  if (audit_failures_.fetch_add(1) == 0) log_.warn("the audit log fails: {}", written.message());
}

void Service::answered(const HttpHead& head, const HttpAnswer& answer,
                       std::optional<double> seconds) {
  const Result<Endpoints::Match> match = endpoints_.find(head.method, head.target);
  const Endpoint* endpoint = match.is_ok() ? match->endpoint : nullptr;
  const bool named = endpoint != nullptr && (seconds || endpoint->scope == Scope::kNone);
  const std::size_t sent = head.method == "HEAD" ? 0 : answer.body.size();
  metrics_.count(named ? endpoint->kind : "refused", answer.status, seconds,
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
  counter("purlin_http_limited_total", "Requests refused for the limits of their token.",
          limited_.load());
  counter("purlin_audit_failures_total", "Writes whose line could not be written.",
          audit_failures_.load());
  for (const auto& more : more_metrics_) text += more();
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
