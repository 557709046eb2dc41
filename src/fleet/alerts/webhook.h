// SPDX-License-Identifier: Apache-2.0
// Webhook: where findings are sent, and in which words: generic JSON, Slack, Alertmanager v2.
// OTLP takes the verdicts as metrics. Configured by a TOML file (docs/formats/alerts.md).
//
// Names in findings come from other machines: each body escapes them as its reader needs. Pure,
// except for loading the file. Failure: kInvalid with file and line.
#pragma once

#include "base/status.h"
#include "fleet/alerts/finding.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet {

enum class WebhookKind { kGeneric, kSlack, kAlertmanager };

struct Webhook {
  std::string name, url;
  WebhookKind kind = WebhookKind::kGeneric;
  std::vector<std::string> kinds;  // of findings; empty = all
  double min_lost_gpu_s = 0;       // findings that cost less are not sent
  std::string bearer_file;         // a file with a token for the receiver; "" = none

  bool wants(const Finding& finding) const;
};

struct AlertConfig {
  std::string url;                    // of this server, for links
  double every_s = 900;               // between evaluations
  double period_s = 7 * 24 * 3600.0;  // that is looked at
  std::vector<Webhook> webhooks;
  std::string otlp_url;  // "http://collector:4318/v1/metrics"; "" = none
};
Result<AlertConfig> load_alerts(const std::string& path);
Result<AlertConfig> parse_alerts(std::string_view text, const std::string& file);

std::string webhook_body(WebhookKind kind, const Finding& finding, std::int64_t now_ns);

// The verdicts of one evaluation, as counts.
struct Verdicts {
  int tested = 0, alarms = 0, suspects = 0, stragglers = 0, thin_nodes = 0;
  double lost_gpu_s = 0;
  bool refused = false;  // the coverage of the fleet is too thin
};
// OTLP/JSON of metrics; the findings are data points with kernel and GPU, 50 at most.
std::string otlp_metrics(const Verdicts& verdicts, const std::vector<Finding>& findings,
                         std::int64_t now_ns);
// Prometheus' text: without names of kernels, which would be labels without a bound.
std::string verdict_metrics(const Verdicts& verdicts);

}  // namespace purlin::fleet
