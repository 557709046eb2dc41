// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/documents.h"

#include "base/time.h"
#include "fleet/percent.h"

namespace purlin::fleet::analysis {
namespace {

template <class Range, class Make>
Json list_of(const Range& range, Make make) {
  Json list = Json::array();
  for (const auto& item : range) list.push(make(item));
  return list;
}

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void set_refusal(Json* json, const std::string& why) {
  if (!why.empty()) json->set("refused", Json::object({{"why", why}}));
}
void set_refusal(Json* json, const std::optional<std::string>& why) {
  set_refusal(json, why.value_or(""));
}

Json mark_json(const EnvironmentMark& mark) {
  return Json::object({{"what", mark.what},
                       {"before", mark.before},
                       {"after", mark.after},
                       {"share_before", mark.share_before},
                       {"share_after", mark.share_after}});
}

Json comparison_json(const KernelComparison& row) {
  Json json = Json::object({{"kernel", row.key.kernel},
                            {"gpu", row.key.gpu},
                            {"role", row.role},
                            {"change", to_text(row.change)}});
  if (row.change == Change::kRefused) {
    set_refusal(&json, row.refused);
  } else {
    json.set("ratio", row.ratio).set("ratio_low", row.low).set("ratio_high", row.high);
    json.set("confidence", row.confidence).set("p_value", row.p_value).set("paired", row.paired);
  }
  json.set("mixed_ratio", row.mixed_ratio).set("common_share", row.common_share);
  json.set("nodes_before", row.nodes_before).set("nodes_after", row.nodes_after);
  json.set("nodes_paired", row.nodes_paired);
  json.set("launches_before", row.launches_before).set("launches_after", row.launches_after);
  json.set("gpu_s_before", row.gpu_s_before).set("gpu_s_after", row.gpu_s_after);
  return json;
}

Json slower_json(const SlowerKernel& row) {
  Json json = Json::object({{"kernel", row.key.kernel},
                            {"gpu", row.key.gpu},
                            {"role", row.role},
                            {"certainty", row.alarm ? "alarm" : "suspect"},
                            {"ratio", row.ratio},
                            {"ratio_low", row.low},
                            {"ratio_high", row.high},
                            {"confidence", row.confidence},
                            {"p_value", row.p_value},
                            {"history_p_value", row.history_p},
                            {"at", format_rfc3339(row.at_ns)},
                            {"nodes", row.nodes},
                            {"gpu_s_after", row.gpu_s_after},
                            {"lost_gpu_s", row.lost_gpu_s},
                            {"marks", list_of(row.marks, mark_json)}});
  const std::string kernel = percent_encoded(row.key.kernel);
  json.set("history", "/v1/query/history?kernel=" + kernel);
  json.set("guard_runs", "/v1/guard?kernel=" + kernel);
  if (!row.why_suspect.empty()) json.set("why_suspect", row.why_suspect);
  if (std::string command = bisect_command(row); !command.empty())
    json.set("bisect", std::move(command));
  return json;
}

Json straggler_json(const Straggler& row) {
  return Json::object({{"node", row.node},
                       {"device", row.device},
                       {"gpu", row.gpu},
                       {"relative_score", optional_number(row.relative_score)},
                       {"individual_score", optional_number(row.individual_score)},
                       {"slow_to_peers", row.slow_to_peers},
                       {"slow_to_past", row.slow_to_past},
                       {"deviations", row.deviations},
                       {"peers", row.peers},
                       {"strata", row.strata},
                       {"gpu_s", row.gpu_s},
                       {"lost_gpu_s", row.lost_gpu_s},
                       {"worst_kernel", row.worst_kernel}});
}

}  // namespace

Json to_json(const Coverage& coverage) {
  return Json::object({{"nodes", coverage.nodes},
                       {"devices", coverage.devices},
                       {"busy_s", coverage.busy_ns * 1e-9},
                       {"seen_s", coverage.seen_ns * 1e-9},
                       {"seen_share", optional_number(coverage.seen_share())},
                       {"launches_seen", coverage.launches_seen},
                       {"launches_lost", coverage.launches_lost},
                       {"lost_share", optional_number(coverage.lost_share())},
                       {"overhead_s", coverage.overhead_ns * 1e-9},
                       {"bad_timestamps", coverage.bad_timestamps},
                       {"why", Json::array_of(coverage.why)}});
}

Json to_json(const std::vector<RoofRow>& roofs) {
  return list_of(roofs, [](const RoofRow& row) {
    Json json = Json::object({{"kernel", row.kernel}});
    if (!row.gpu.empty() || !row.shape.empty())
      json.set("shape", row.shape).set("dtype", row.dtype).set("gpu", row.gpu);
    json.set("gpu_s", row.gpu_s).set("known_gpu_s", row.known_gpu_s);
    json.set("utilization", optional_number(row.utilization));
    json.set("headroom", optional_number(row.headroom()));
    json.set("bound", analyze::to_text(row.bound)).set("bound_share", row.bound_share);
    json.set("bound_from", row.bound_from).set("evidence", row.evidence);
    if (!row.unknown.empty()) json.set("unknown", row.unknown);
    return json;
  });
}

Json to_json(const Comparison& comparison) {
  Json json = Json::object({{"kernels", list_of(comparison.kernels, comparison_json)}});
  set_refusal(&json, comparison.refused);
  return json;
}

Json to_json(const Slower& slower) {
  Json json = Json::object({{"tested", slower.tested},
                            {"kernels", list_of(slower.kernels, slower_json)},
                            {"thin", list_of(slower.thin, [](const RefusedKernel& row) {
                               return Json::object({{"kernel", row.key.kernel},
                                                    {"gpu", row.key.gpu},
                                                    {"refused", Json::object({{"why", row.why}})}});
                             })}});
  set_refusal(&json, slower.refused);
  return json;
}

Json to_json(const Stragglers& stragglers) {
  Json json = Json::object({{"devices", stragglers.devices},
                            {"stragglers", list_of(stragglers.devices_slow, straggler_json)},
                            {"thin", Json::array_of(stragglers.thin)}});
  set_refusal(&json, stragglers.refused);
  return json;
}

}  // namespace purlin::fleet::analysis
