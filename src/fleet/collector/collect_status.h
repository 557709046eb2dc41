// SPDX-License-Identifier: Apache-2.0
// CollectStatus: what a collector answers on loopback: GET /healthz, which is 503 where no look
// succeeded for some periods, and GET /metrics. No label has a kernel's name: their number has no
// bound. [MT]; the suppliers outlive it. Failure: as an answer's status.
#pragma once

#include "base/time.h"
#include "fleet/collector/batch_spool.h"
#include "fleet/collector/collector.h"
#include "fleet/collector/raw_spool.h"
#include "fleet/collector/shipper.h"
#include "fleet/endpoint.h"

#include <functional>

namespace purlin::fleet {

struct CollectFacts {
  CollectorState state;
  BatchSpool::Totals spool;
  RawSpool::Totals raws;
  WindowTaker::Counts windows;
  ShipperCounts shipped;
  double period_s = 10;
};

class CollectStatus : public HttpHandler {
 public:
  CollectStatus(std::function<CollectFacts()> facts, Clock& clock)
      : facts_(std::move(facts)), clock_(clock) {}
  // Further metrics, as Prometheus' text; before the first request.
  void add_metrics(std::function<std::string()> text) { more_metrics_ = std::move(text); }
  std::optional<HttpAnswer> early(const HttpHead& head) override;
  HttpAnswer answer(const HttpHead& head, const std::string& body) override;
  void answered(const HttpHead&, const HttpAnswer&, std::optional<double>) override {}

 private:
  HttpAnswer health() const;
  std::string metrics() const;
  const std::function<CollectFacts()> facts_;
  std::function<std::string()> more_metrics_;
  Clock& clock_;
};

}  // namespace purlin::fleet
