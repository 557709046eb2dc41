// SPDX-License-Identifier: Apache-2.0
// Service: everything `purlin serve` answers: who may (tokens), what (fleet/cache_api), and how it
// went (metrics, a line for each request where wanted).
//
// [MT] as an HttpHandler, and `replace_tokens`. Log and API outlive it. Failure: as an
// answer's status.
#pragma once

#include "base/json/json.h"
#include "base/log.h"
#include "fleet/cache_api.h"
#include "fleet/http_server.h"
#include "fleet/metrics.h"
#include "fleet/tokens.h"

#include <functional>
#include <memory>
#include <mutex>

namespace purlin::fleet {

struct ServiceOptions {
  Tokens tokens;
  bool log_requests = false;
  std::function<void(const Json&)> on_request;  // for each answer; [MT]; may be empty
};

class Service : public HttpHandler {
 public:
  Service(ServiceOptions options, CacheApi& caches, Log& log)
      : tokens_(std::make_shared<const Tokens>(std::move(options.tokens))),
        log_requests_(options.log_requests),
        on_request_(std::move(options.on_request)),
        caches_(caches),
        log_(log) {}
  // For metrics; before the first request.
  void watch(std::function<HttpServerCounts()> counts) { counts_ = std::move(counts); }
  // For requests from now on. Tokens that are none would let everyone in: they are not taken.
  void replace_tokens(Tokens tokens);

  // Health, and what is refused.
  std::optional<HttpAnswer> early(const HttpHead& head) override;
  HttpAnswer answer(const HttpHead& head, const std::string& body) override;
  // Counts it, and writes its line.
  void answered(const HttpHead& head, const HttpAnswer& answer,
                std::optional<double> seconds) override;

 private:
  std::shared_ptr<const Tokens> tokens() const;
  std::optional<HttpAnswer> check(const HttpHead& head, const Result<Route>& route) const;
  std::string metrics() const;
  void log(const HttpHead& head, const HttpAnswer& answer, double seconds, std::size_t sent);

  mutable std::mutex mutex_;
  std::shared_ptr<const Tokens> tokens_;  // under the mutex
  const bool log_requests_;
  const std::function<void(const Json&)> on_request_;
  CacheApi& caches_;
  Log& log_;
  RequestMetrics metrics_;
  std::function<HttpServerCounts()> counts_;
};

}  // namespace purlin::fleet
