// SPDX-License-Identifier: Apache-2.0
#include "fleet/alerts/webhook.h"

#include "base/files.h"
#include "base/output/escaped.h"
#include "base/text.h"
#include "base/time.h"
#include "base/toml.h"
#include "base/version.h"
#include "fleet/metrics.h"

#include <algorithm>

namespace purlin::fleet {
namespace {

constexpr std::size_t kMaxPoints = 50;
constexpr std::int64_t kAlertLastsNs = 25LL * 3600 * 1'000'000'000;

struct KindName {
  std::string_view name;
  WebhookKind kind;
};
constexpr KindName kKinds[] = {{"generic", WebhookKind::kGeneric},
                               {"slack", WebhookKind::kSlack},
                               {"alertmanager", WebhookKind::kAlertmanager}};

bool is_http(const std::string& url) {
  return starts_with(url, "http://") || starts_with(url, "https://");
}

Result<double> duration_or(TomlTable& table, std::string_view key, double fallback) {
  PURLIN_ASSIGN(const std::string text, table.string_or(key, ""));
  if (text.empty()) return fallback;
  const std::optional<double> seconds = parse_duration_s(text);
  if (!seconds || *seconds < 1)
    return table.node().complain(fmt::format("{} takes a time such as 15m, not '{}'", key, text));
  return *seconds;
}

Result<Webhook> webhook_of(const Toml& node) {
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[[webhooks]]"));
  Webhook hook;
  PURLIN_ASSIGN(hook.name, table.string("name"));
  PURLIN_ASSIGN(hook.url, table.string("url"));
  PURLIN_ASSIGN(const std::string kind, table.string_or("kind", "generic"));
  const auto* const found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                         [&](const KindName& one) { return one.name == kind; });
  if (found == std::end(kKinds))
    return node.complain(
        fmt::format("kind is generic, slack or alertmanager, not '{}'", one_line(kind)));
  hook.kind = found->kind;
  PURLIN_ASSIGN(hook.kinds, table.strings_or_empty("findings"));
  for (const std::string& one : hook.kinds)
    if (one != "slower" && one != "straggler" && one != "thin")
      return node.complain(
          fmt::format("findings are slower, straggler and thin, not '{}'", one_line(one)));
  PURLIN_ASSIGN(hook.min_lost_gpu_s, table.number_or("min_lost_gpu_s", 0));
  PURLIN_ASSIGN(hook.bearer_file, table.string_or("bearer_file", ""));
  PURLIN_TRY(table.finish());
  if (!is_http(hook.url)) return node.complain("url must begin with http:// or https://");
  return hook;
}

// What Slack reads as markup or a mention.
std::string slack_text(std::string_view text) {
  std::string out;
  for (const char character : one_line(text)) {
    if (character == '&')
      out += "&amp;";
    else if (character == '<')
      out += "&lt;";
    else if (character == '>')
      out += "&gt;";
    else
      out += character == '|' || character == '`' || character == '*' ? ' ' : character;
  }
  return out;
}

Json generic_body(const Finding& finding) {
  return Json::object({{"schema", "purlin.alert/1"},
                       {"tool_version", version()},
                       {"id", finding.id()},
                       {"kind", finding.kind},
                       {"title", finding.title},
                       {"text", finding.text},
                       {"kernel", finding.kernel},
                       {"gpu", finding.gpu},
                       {"node", finding.node},
                       {"ratio", finding.ratio},
                       {"lost_gpu_s", finding.lost_gpu_s},
                       {"at", format_rfc3339(finding.at_ns)},
                       {"link", finding.link},
                       {"command", finding.command}});
}

Json slack_body(const Finding& finding) {
  std::string text = fmt::format("*<{}|{}>*\n{}", finding.link, slack_text(finding.title),
                                 slack_text(finding.text));
  if (!finding.command.empty()) text += fmt::format("\n`{}`", slack_text(finding.command));
  return Json::object({{"text", std::move(text)}});
}

Json alertmanager_body(const Finding& finding, std::int64_t now_ns) {
  const std::string name = finding.kind == "slower"      ? "PurlinKernelSlower"
                           : finding.kind == "straggler" ? "PurlinStraggler"
                                                         : "PurlinThinCoverage";
  Json labels = Json::object({{"alertname", name},
                              {"severity", finding.kind == "thin" ? "info" : "warning"},
                              {"finding", finding.id()}});
  for (const auto& [key, value] :
       {std::pair{"kernel", &finding.kernel}, std::pair{"gpu", &finding.gpu},
        std::pair{"node", &finding.node}})
    if (!value->empty()) labels.set(key, *value);
  Json annotations = Json::object({{"summary", finding.title}, {"description", finding.text}});
  if (!finding.command.empty()) annotations.set("command", finding.command);
  return Json::array({Json::object({{"labels", std::move(labels)},
                                    {"annotations", std::move(annotations)},
                                    {"startsAt", format_rfc3339(finding.at_ns)},
                                    {"endsAt", format_rfc3339(now_ns + kAlertLastsNs)},
                                    {"generatorURL", finding.link}})});
}

Json gauge(std::string_view name, std::string_view unit, Json points) {
  return Json::object({{"name", name},
                       {"unit", unit},
                       {"gauge", Json::object({{"dataPoints", std::move(points)}})}});
}

Json attribute(std::string_view key, const std::string& value) {
  return Json::object({{"key", key}, {"value", Json::object({{"stringValue", value}})}});
}

Json point(double value, std::int64_t now_ns, Json attributes = Json::array()) {
  return Json::object({{"timeUnixNano", std::to_string(now_ns)},
                       {"asDouble", value},
                       {"attributes", std::move(attributes)}});
}

}  // namespace

bool Webhook::wants(const Finding& finding) const {
  if (finding.kind != "thin" && finding.lost_gpu_s < min_lost_gpu_s) return false;
  return kinds.empty() || std::find(kinds.begin(), kinds.end(), finding.kind) != kinds.end();
}

Result<AlertConfig> parse_alerts(std::string_view text, const std::string& file) {
  PURLIN_ASSIGN(const Toml toml, Toml::parse(text, file));
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(toml, "the file"));
  PURLIN_ASSIGN(const std::string schema, table.string("schema"));
  if (schema != "purlin.alerts/1")
    return toml.complain(fmt::format("schema must be purlin.alerts/1, not '{}'", one_line(schema)));
  AlertConfig config;
  PURLIN_ASSIGN(config.url, table.string("url"));
  if (!is_http(config.url)) return toml.complain("url must begin with http:// or https://");
  PURLIN_ASSIGN(config.every_s, duration_or(table, "every", config.every_s));
  PURLIN_ASSIGN(config.period_s, duration_or(table, "period", config.period_s));
  PURLIN_ASSIGN(config.otlp_url, table.string_or("otlp_url", ""));
  if (!config.otlp_url.empty() && !is_http(config.otlp_url))
    return toml.complain("otlp_url must begin with http:// or https://");
  if (const Toml* const hooks = table.optional("webhooks"); hooks != nullptr) {
    if (hooks->array() == nullptr) return hooks->complain("webhooks are [[webhooks]] tables");
    for (const Toml& node : *hooks->array()) {
      PURLIN_ASSIGN(Webhook hook, webhook_of(node));
      for (const Webhook& other : config.webhooks)
        if (other.name == hook.name)
          return node.complain(fmt::format("two webhooks are named '{}'", one_line(hook.name)));
      config.webhooks.push_back(std::move(hook));
    }
  }
  PURLIN_TRY(table.finish());
  return config;
}

Result<AlertConfig> load_alerts(const std::string& path) {
  PURLIN_ASSIGN(const std::string text, read_file(path, std::size_t{1} << 20));
  return parse_alerts(text, path);
}

std::string webhook_body(WebhookKind kind, const Finding& finding, std::int64_t now_ns) {
  switch (kind) {
    case WebhookKind::kSlack:
      return slack_body(finding).dump();
    case WebhookKind::kAlertmanager:
      return alertmanager_body(finding, now_ns).dump();
    case WebhookKind::kGeneric:
      break;
  }
  return generic_body(finding).dump();
}

std::string otlp_metrics(const Verdicts& verdicts, const std::vector<Finding>& findings,
                         std::int64_t now_ns) {
  Json slowdowns = Json::array();
  for (const Finding& finding : findings) {
    if (slowdowns.size() == kMaxPoints) break;
    if (finding.ratio <= 0) continue;
    slowdowns.push(point(
        finding.ratio, now_ns,
        Json::array({attribute("purlin.finding", finding.kind),
                     attribute("purlin.kernel", finding.kernel),
                     attribute("gpu.model", finding.gpu), attribute("host.name", finding.node)})));
  }
  Json metrics = Json::array(
      {gauge("purlin.kernels.slower", "{kernel}",
             Json::array(
                 {point(verdicts.alarms, now_ns, Json::array({attribute("certainty", "alarm")})),
                  point(verdicts.suspects, now_ns,
                        Json::array({attribute("certainty", "suspect")}))})),
       gauge("purlin.kernels.tested", "{kernel}", Json::array({point(verdicts.tested, now_ns)})),
       gauge("purlin.stragglers", "{gpu}", Json::array({point(verdicts.stragglers, now_ns)})),
       gauge("purlin.nodes.thin", "{node}", Json::array({point(verdicts.thin_nodes, now_ns)})),
       gauge("purlin.lost", "s", Json::array({point(verdicts.lost_gpu_s, now_ns)}))});
  if (slowdowns.size() > 0) metrics.push(gauge("purlin.slowdown", "1", std::move(slowdowns)));
  Json scope = Json::object({{"scope", Json::object({{"name", "purlin"}, {"version", version()}})},
                             {"metrics", metrics}});
  Json resource = Json::object(
      {{"resource",
        Json::object({{"attributes", Json::array({attribute("service.name", "purlin-server")})}})},
       {"scopeMetrics", Json::array({std::move(scope)})}});
  return Json::object({{"resourceMetrics", Json::array({std::move(resource)})}}).dump();
}

std::string verdict_metrics(const Verdicts& verdicts) {
  std::string text = fmt::format(
      "# HELP purlin_slower_kernels Kernels that became slower in the period.\n"
      "# TYPE purlin_slower_kernels gauge\n"
      "purlin_slower_kernels{{certainty=\"alarm\"}} {}\n"
      "purlin_slower_kernels{{certainty=\"suspect\"}} {}\n",
      verdicts.alarms, verdicts.suspects);
  text += RequestMetrics::single("purlin_tested_kernels", "gauge",
                                 "Kernels with enough records for a verdict.", verdicts.tested);
  text +=
      RequestMetrics::single("purlin_straggler_gpus", "gauge",
                             "GPUs slower than their peers or their past.", verdicts.stragglers);
  text += RequestMetrics::single("purlin_thin_nodes", "gauge",
                                 "Nodes whose records are too thin for conclusions.",
                                 verdicts.thin_nodes);
  text += RequestMetrics::single("purlin_lost_gpu_seconds", "gauge",
                                 "GPU time that slower kernels and stragglers cost in the period.",
                                 verdicts.lost_gpu_s);
  text += RequestMetrics::single("purlin_analysis_refused", "gauge",
                                 "1 while the coverage is too thin for any conclusion.",
                                 verdicts.refused ? 1 : 0);
  return text;
}

}  // namespace purlin::fleet
