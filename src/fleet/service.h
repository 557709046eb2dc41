// SPDX-License-Identifier: Apache-2.0
// Service: everything `purlin serve` answers: who may (tokens, limits), what (the endpoints), and
// how it went (metrics, a line for each request where wanted, the audit log of writes).
//
// [MT] as an HttpHandler, and `replace_tokens`. Log, audit log and what the endpoints call outlive
// it. Failure: as an answer's status.
#pragma once

#include "base/json/json.h"
#include "base/log.h"
#include "base/time.h"
#include "fleet/audit_log.h"
#include "fleet/endpoint.h"
#include "fleet/http_server.h"
#include "fleet/metrics.h"
#include "fleet/rate_limiter.h"
#include "fleet/tokens.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

namespace purlin::fleet {

struct ServiceOptions {
  Tokens tokens{};
  bool log_requests = false;
  // Queries that may be under way at once: the other handler threads stay for writes. More: 503.
  int max_queries = 6;
  std::function<void(const Json&)> on_request{};  // for each answer; [MT]; may be empty
};

class Service : public HttpHandler {
 public:
  Service(ServiceOptions options, std::vector<Endpoint> endpoints, Log& log,
          AuditLog* audit = nullptr, Clock& clock = system_clock());
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  // For metrics; before the first request.
  void watch(std::function<HttpServerCounts()> counts) { counts_ = std::move(counts); }
  // Further metrics, as Prometheus' text; before the first request.
  void add_metrics(std::function<std::string()> text) { more_metrics_.push_back(std::move(text)); }
  // For requests from now on. Tokens that are none would let everyone in: they are not taken.
  void replace_tokens(Tokens tokens);
  const Endpoints& endpoints() const { return endpoints_; }

  // Health, and what is refused.
  std::optional<HttpAnswer> early(const HttpHead& head) override;
  HttpAnswer answer(const HttpHead& head, const std::string& body) override;
  // Counts it, and writes its line.
  void answered(const HttpHead& head, const HttpAnswer& answer,
                std::optional<double> seconds) override;

 private:
  std::shared_ptr<const Tokens> tokens() const;
  std::optional<HttpAnswer> check(const HttpHead& head, const Result<Endpoints::Match>& match);
  std::optional<HttpAnswer> check_token(const HttpHead& head,
                                        const Result<Endpoints::Match>& match);
  HttpAnswer ask(const Endpoint& endpoint, const Request& request);
  HttpAnswer access(const Request& request) const;
  void audit(const Endpoint& endpoint, const Request& request, const HttpAnswer& answer);
  std::string metrics() const;
  void log(const HttpHead& head, const HttpAnswer& answer, double seconds, std::size_t sent);

  mutable std::mutex mutex_;
  std::shared_ptr<const Tokens> tokens_;  // under the mutex
  const bool log_requests_;
  const std::function<void(const Json&)> on_request_;
  const int max_queries_;
  Endpoints endpoints_;
  Log& log_;
  AuditLog* const audit_;
  Clock& clock_;
  RateLimiter limiter_;
  RequestMetrics metrics_;
  std::atomic<int> queries_{0};
  std::atomic<std::uint64_t> limited_{0}, audit_failures_{0};
  std::function<HttpServerCounts()> counts_;
  std::vector<std::function<std::string()>> more_metrics_;
};

}  // namespace purlin::fleet
