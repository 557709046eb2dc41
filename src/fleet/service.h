// SPDX-License-Identifier: Apache-2.0
// Service: everything `purlin serve` answers: who may (tokens), what (fleet/cache_api), and how it
// went (metrics, a line for each request where wanted).
//
// [MT] as an HttpHandler. Log, clock and the API outlive it. Failure: as an answer's status.
#pragma once

#include "base/log.h"
#include "base/time.h"
#include "fleet/cache_api.h"
#include "fleet/http_server.h"
#include "fleet/metrics.h"
#include "fleet/tokens.h"

#include <atomic>
#include <functional>

namespace purlin::fleet {

struct ServiceOptions {
  Tokens tokens;
  bool log_requests = false;
};

class Service : public HttpHandler {
 public:
  Service(ServiceOptions options, CacheApi& caches, Log& log, Clock& clock)
      : options_(std::move(options)), caches_(caches), log_(log), clock_(clock) {}
  // For metrics; before the first request.
  void watch(std::function<HttpServerCounts()> counts) { counts_ = std::move(counts); }

  std::optional<HttpAnswer> refuse(const HttpHead& head) override;
  HttpAnswer answer(const HttpHead& head, const std::string& body) override;

 private:
  std::optional<HttpAnswer> check(const HttpHead& head);
  std::string metrics() const;
  void note(const HttpHead& head, std::string_view kind, const HttpAnswer& answer, double seconds);

  const ServiceOptions options_;
  CacheApi& caches_;
  Log& log_;
  Clock& clock_;
  RequestMetrics metrics_;
  std::function<HttpServerCounts()> counts_;
};

}  // namespace purlin::fleet
