// SPDX-License-Identifier: Apache-2.0
#include "guard/report/sarif.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/version.h"

namespace purlin::guard {
namespace {

struct Rule {
  Verdict verdict;
  std::string_view id, level, text;
};
constexpr Rule kRules[] = {
    {Verdict::kRegression, "purlin/regression", "error", "The kernel became slower."},
    {Verdict::kInvalid, "purlin/invalid", "error", "The measurement of the kernel was not valid."},
    {Verdict::kInconclusive, "purlin/inconclusive", "warning",
     "The gate could not decide whether the kernel became slower."},
};

const Rule* rule_of(Verdict verdict) {
  for (const Rule& rule : kRules)
    if (rule.verdict == verdict) return &rule;
  return nullptr;
}

// Escapes the characters that are valid in a path and not in a URI.
std::string uri_of(const std::string& path, const std::string& root) {
  std::string name = absolute_path(path);
  const std::string folder = root.empty() ? "" : absolute_path(root) + "/";
  if (!folder.empty() && name.rfind(folder, 0) == 0) name = name.substr(folder.size());
  std::string uri;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/-_.~").find(c) != std::string_view::npos)
      uri += c;
    else
      uri += fmt::format("%{:02X}", byte);
  }
  return name.rfind('/', 0) == 0 ? "file://" + uri : uri;
}

std::string message_of(const ReportItem& item) {
  const Effect& effect = item.result.effect;
  std::string text = item.kernel + (item.shape.empty() ? "" : " " + item.shape);
  if (effect.pairs > 0)
    text += fmt::format(
        ": {:.3f}x the baseline's time, 95 % interval [{:.3f}, {:.3f}], {} of processes",
        effect.ratio, effect.low, effect.high, counted(item.result.pairs, "pair"));
  if (!item.result.cause.empty()) text += "; cause: " + item.result.cause;
  if (!item.result.reason.empty()) text += "; " + item.result.reason;
  return text;
}

}  // namespace

Json to_sarif(const Report& report, const std::string& root) {
  Json rules = Json::array();
  for (const Rule& rule : kRules)
    rules.push(Json::object({{"id", rule.id},
                             {"shortDescription", Json::object({{"text", rule.text}})},
                             {"defaultConfiguration", Json::object({{"level", rule.level}})}}));
  Json results = Json::array();
  for (const ReportItem& item : report.items) {
    const Rule* rule = rule_of(item.result.verdict);
    if (rule == nullptr) continue;
    Json result = Json::object({{"ruleId", rule->id},
                                {"level", rule->level},
                                {"message", Json::object({{"text", message_of(item)}})}});
    if (!item.file.empty())
      result.set("locations",
                 Json::array({Json::object(
                     {{"physicalLocation",
                       Json::object(
                           {{"artifactLocation", Json::object({{"uri", uri_of(item.file, root)}})},
                            {"region", Json::object({{"startLine", 1}})}})}})}));
    FieldHasher hasher;
    hasher.add(report.suite).add(item.kernel).add(item.shape).add(item.variant);
    result.set("partialFingerprints", Json::object({{"purlinItem/v1", hasher.hex()}}));
    results.push(std::move(result));
  }
  const Json driver = Json::object(
      {{"name", "purlin guard"}, {"semanticVersion", version()}, {"rules", std::move(rules)}});
  return Json::object(
      {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
       {"version", "2.1.0"},
       {"runs", Json::array({Json::object(
                    {{"tool", Json::object({{"driver", driver}})},
                     {"automationDetails", Json::object({{"id", "purlin/" + report.suite}})},
                     {"results", std::move(results)}})})}});
}

}  // namespace purlin::guard
