// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/raw_kernel.h"

#include "analyze/advise/advice.h"
#include "analyze/phase/slice.h"
#include "fleet/analysis/stored_name.h"
#include "profile/format/file.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace purlin::fleet::analysis {
namespace {

bool names(const Json& list, const std::string& label) {
  const auto& items = list.items();
  return std::any_of(items.begin(), items.end(),
                     [&](const Json& one) { return one.as_string() == label; });
}

// Those that name the kernel.
Json about(const Json& list, const std::string& label) {
  Json out = Json::array();
  for (const Json& one : list.items())
    if (names(one["kernels"], label)) out.push(one);
  return out;
}

}  // namespace

Result<RawAnalysis> analyse_raw(std::string_view bytes, std::size_t max_events) {
  profile::ReadOptions options;
  options.max_timeline_events = max_events;
  options.workers = 1;  // the server has other requests
  PURLIN_ASSIGN(Profile profile, profile::decode_profile(bytes, options));
  PURLIN_ASSIGN(analyze::TimelineAnalysis timeline,
                analyze::select_phase(profile, analyze::PhaseChoice::kSteadyState));
  RawAnalysis raw;
  raw.report = analyze::build_report(profile, std::move(timeline), analyze::GroupBy::kKernel);
  raw.advice = analyze::to_json(analyze::advise(profile, raw.report.timeline));
  raw.report.timeline = {};
  return raw;
}

Json row_of_kernel(const RawAnalysis& raw, const std::string& kernel, const std::string& model) {
  const auto has_name = [&](const analyze::KernelName& name) {
    return stored_name(name, name.full) == kernel || name.full == kernel;
  };
  std::vector<const analyze::KernelStat*> found;  // by time, as the report has them
  for (const analyze::KernelStat& row : raw.report.kernels)
    if (has_name(row.name) && (model.empty() || row.device == model)) found.push_back(&row);
  if (found.empty()) return {};
  analyze::Report one;
  one.targets = raw.report.targets;
  one.group_by = raw.report.group_by;
  one.kernels = {*found.front()};
  Json row = analyze::to_json(one)["kernels"].items().front();
  row.set("namesakes", found.size());
  return row;
}

Json advice_of_kernel(const RawAnalysis& raw, const std::string& label) {
  return Json::object({{"unit", raw.advice["unit"]},
                       {"interventions", about(raw.advice["interventions"], label)},
                       {"trades", about(raw.advice["trades"], label)},
                       {"no_gain", about(raw.advice["no_gain"], label)}});
}

}  // namespace purlin::fleet::analysis
