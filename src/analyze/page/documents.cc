// SPDX-License-Identifier: Apache-2.0
#include "analyze/page/documents.h"

#include "analyze/advise/savings/applied.h"
#include "analyze/page/timeline_document.h"
#include "analyze/phase/slice.h"
#include "analyze/report/identity.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr std::size_t kAppliedChanges = 3;
constexpr std::size_t kEventsToApply = 400'000;  // of the whole; more take too long to replay

std::string numbered(std::string_view name, std::size_t file) {
  return file == 0 ? std::string(name) : fmt::format("{}-{}", name, file);
}

std::uint8_t index_of_text(std::vector<std::string>& list, std::string_view text) {
  const auto found = std::find(list.begin(), list.end(), text);
  if (found != list.end()) return static_cast<std::uint8_t>(found - list.begin());
  if (list.size() == 255) return 254;
  list.emplace_back(text);
  return static_cast<std::uint8_t>(list.size() - 1);
}

// The rows beyond those in full: enough to list, sort and filter them.
std::optional<page::Document> short_rows(const Report& report, std::size_t file,
                                         const PageLimits& limits) {
  const std::size_t first = limits.kernels;
  const std::size_t last = std::min(report.kernels.size(), first + limits.short_rows);
  if (last <= first) return std::nullopt;
  std::vector<double> total, count, p50, p95, utilization, headroom;
  std::vector<std::uint8_t> bound, op_class, names;
  std::vector<std::string> bounds, classes;
  for (std::size_t i = first; i < last; ++i) {
    const KernelStat& row = report.kernels[i];
    total.push_back(row.duration.total_ns());
    count.push_back(row.duration.count());
    p50.push_back(row.duration.empty() ? 0 : row.duration.quantile(0.5));
    p95.push_back(row.duration.empty() ? 0 : row.duration.quantile(0.95));
    utilization.push_back(row.roof.utilization);
    bound.push_back(index_of_text(bounds, to_text(row.roof.bound)));
    op_class.push_back(index_of_text(classes, row.name.op_class));
    std::string label = elide_middle(row.label, limits.label_characters);
    std::replace(label.begin(), label.end(), '\n', ' ');
    names.insert(names.end(), label.begin(), label.end());
    names.push_back('\n');
  }
  page::Document document(numbered("rows", file),
                          Json::object({{"schema", "purlin.page-rows/1"},
                                        {"rows", last - first},
                                        {"bounds", Json::array_of(bounds)},
                                        {"classes", Json::array_of(classes)}}));
  document.add("total_ns", std::span<const double>(total));
  document.add("count", std::span<const double>(count));
  document.add("p50_ns", std::span<const double>(p50));
  document.add("p95_ns", std::span<const double>(p95));
  document.add("utilization", std::span<const double>(utilization));
  document.add("bound", std::span<const std::uint8_t>(bound));
  document.add("op_class", std::span<const std::uint8_t>(op_class));
  document.add("labels", std::span<const std::uint8_t>(names));
  return document;
}

void add_applied(const PageOfProfile& input, std::size_t file, std::vector<page::Document>& out) {
  if (event_count(input.whole.timeline) > kEventsToApply) return;
  std::size_t made = 0;
  for (const Intervention& change : input.advice.interventions) {
    if (made == kAppliedChanges) return;
    Result<AppliedChange> applied = apply_intervention(input.profile, input.report.timeline,
                                                       input.measured, input.advice, change.id);
    if (!applied.is_ok()) continue;  // it was not estimated by replay
    const AppliedChange& after = applied.value();
    std::optional<page::Document> document = timeline_document(
        numbered(fmt::format("applied{}", made), file), after.timeline,
        analyze_timeline(after.timeline, PhaseChoice::kAll), input.report.group_by);
    if (!document) continue;
    document->set("applied", to_json(after, input.advice));
    document->set("title", change.title);
    out.push_back(std::move(*document));
    ++made;
  }
}

}  // namespace

std::vector<page::Document> documents_of(const PageOfProfile& input, std::size_t file,
                                         const PageLimits& limits) {
  std::vector<page::Document> out;
  out.emplace_back(numbered("report", file),
                   report_head(input.report, input.by_launch, input.whole, limits));
  if (std::optional<page::Document> rows = short_rows(input.report, file, limits))
    out.push_back(std::move(*rows));
  out.emplace_back(numbered("advice", file), to_json(input.advice));
  if (std::optional<page::Document> timeline = timeline_document(
          numbered("timeline", file), input.whole, input.report.timeline, input.report.group_by)) {
    out.push_back(std::move(*timeline));
    add_applied(input, file, out);
  }
  return out;
}

Json page_file(const Report& report, const std::string& path) {
  Json devices = Json::array();
  for (const DeviceInfo& device : report.environment.devices) devices.push(device.name);
  return Json::object({{"path", path},
                       {"command", elide_middle(report.command, 300)},
                       {"source", report.source},
                       {"build", report.environment.build},
                       {"recorded_at", report.environment.recorded_at},
                       {"devices", std::move(devices)}});
}

Result<AnalysedPage> analyse_for_page(Profile profile, const std::string& path, std::size_t file,
                                      const std::vector<Ceilings>& measured,
                                      const AdviceOptions& options) {
  const Profile whole = profile;
  PURLIN_ASSIGN(TimelineAnalysis timeline, select_phase(profile, PhaseChoice::kSteadyState));
  Report report = build_report(profile, std::move(timeline), GroupBy::kKernel, measured);
  report.files = {path};
  const Advice advice = advise(profile, report.timeline, measured, options);
  put_advice(advice, report);
  const Report by_launch = build_rows(profile, GroupBy::kLaunch, measured);
  AnalysedPage out;
  out.file = page_file(report, path);
  out.documents = documents_of({whole, profile, report, by_launch, advice, measured}, file);
  return out;
}

}  // namespace purlin::analyze
