// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/query_api.h"

#include "analyze/report/histogram.h"
#include "base/time.h"
#include "fleet/analysis/compare.h"
#include "fleet/analysis/documents.h"
#include "fleet/analysis/roofs.h"
#include "fleet/analysis/slower.h"
#include "fleet/analysis/stragglers.h"
#include "fleet/answers.h"
#include "fleet/api/cells.h"
#include "fleet/api/query_filter.h"

#include <algorithm>
#include <functional>

namespace purlin::fleet {
namespace {

using store::Dimension;

constexpr std::size_t kTopByDefault = 50, kMostTop = 10'000, kMostPoints = 100'000,
                      kMostValues = 10'000, kMostHistograms = 100;

// What all questions have.
struct Question {
  const NamedValues& query;
  store::Filter filter;
  std::int64_t now_ns = 0;
};
// Adds its members to the document.
using Answerer = std::function<Status(store::Reader&, const Question&, Json&)>;

Json filter_json(const store::Filter& filter) {
  Json json = Json::object(
      {{"begin", format_rfc3339(filter.begin_ns)}, {"end", format_rfc3339(filter.end_ns)}});
  for (int i = 0; i < store::kDimensions; ++i)
    if (const auto& value = filter.equals[static_cast<std::size_t>(i)])
      json.set(store::name_of(static_cast<Dimension>(i)), *value);
  return json;
}

// Coverage has no kernels, builds or jobs: only the time, node, GPU and model select it.
store::Filter of_coverage(const store::Filter& filter) {
  store::Filter result;
  result.begin_ns = filter.begin_ns;
  result.end_ns = filter.end_ns;
  for (const Dimension dimension : {Dimension::kModel, Dimension::kNode, Dimension::kGpu})
    result[dimension] = filter[dimension];
  return result;
}

Status add_coverage(store::Reader& reader, const store::Filter& filter, Json& json) {
  PURLIN_ASSIGN(const std::vector<analysis::CoverageCell> cells,
                read_coverage(reader, of_coverage(filter)));
  json.set("coverage", analysis::to_json(analysis::summarise(cells)));
  return Status::ok();
}

void append_members(Json& into, const Json& from) {
  for (const Json::Member& member : from.members()) into.set(member.key, member.value);
}

void add_roles(const store::TopKernels& top, Json& json) {
  std::vector<std::pair<double, std::string>> roles;
  for (const auto& [role, ns] : top.roles_ns) roles.emplace_back(ns, role);
  std::sort(roles.rbegin(), roles.rend());
  Json list = Json::array();
  for (const auto& [ns, role] : roles)
    list.push(Json::object({{"role", role.empty() ? std::string("other") : role},
                            {"gpu_s", ns * 1e-9},
                            {"share", top.sum_ns > 0 ? ns / top.sum_ns : 0}}));
  json.set("roles", std::move(list));
}

Status top(store::Reader& reader, const Question& question, Json& json) {
  PURLIN_ASSIGN(const std::size_t limit,
                parse_limit(value_of(question.query, "limit"), kTopByDefault, kMostTop));
  PURLIN_ASSIGN(const store::TopKernels found, reader.top(question.filter, limit));
  json.set("gpu_s", found.sum_ns * 1e-9);
  json.set("launches", found.launches);
  json.set("kernel_count", found.kernels_in_all);
  Json kernels = Json::array(), of_80_percent;
  double before = 0;
  for (const store::KernelTotal& one : found.kernels) {
    before += one.share;
    if (of_80_percent.is_null() && before >= 0.8 - 1e-12) of_80_percent = kernels.size() + 1;
    kernels.push(Json::object({{"kernel", one.kernel},
                               {"raw_kernel", one.raw_kernel},
                               {"role", one.role},
                               {"launches", one.launches},
                               {"recorded", one.recorded},
                               {"gpu_s", one.sum_ns * 1e-9},
                               {"share", one.share},
                               {"cumulative_share", before},
                               {"p50_ns", one.p50_ns},
                               {"p95_ns", one.p95_ns}}));
  }
  json.set("kernels", std::move(kernels));
  json.set("kernels_with_80_percent", std::move(of_80_percent));
  add_roles(found, json);
  return add_coverage(reader, question.filter, json);
}

Status history(store::Reader& reader, const Question& question, Json& json) {
  PURLIN_ASSIGN(const store::Step step,
                parse_step(value_of(question.query, "step"), store::Step::kHour));
  PURLIN_ASSIGN(const std::vector<Dimension> by, parse_dimensions(value_of(question.query, "by")));
  PURLIN_ASSIGN(std::vector<store::Cell> cells, reader.cells(question.filter, by, step));
  if (cells.size() > kMostPoints)
    return error(Code::kInvalid, "this has {} points, over {}: give a longer step, or more filters",
                 cells.size(), kMostPoints);
  std::sort(cells.begin(), cells.end(), [](const store::Cell& a, const store::Cell& b) {
    return std::tie(a.begin_ns, a.values) < std::tie(b.begin_ns, b.values);
  });
  const bool with_histogram = value_of(question.query, "histogram") == "1";
  if (with_histogram && cells.size() > kMostHistograms)
    return error(Code::kInvalid, "{} points have no histograms; at most {} have", cells.size(),
                 kMostHistograms);
  Json points = Json::array();
  for (const store::Cell& cell : cells) {
    Json point = Json::object();
    if (step != store::Step::kAll) point.set("begin", format_rfc3339(cell.begin_ns));
    for (std::size_t i = 0; i < by.size() && i < cell.values.size(); ++i)
      point.set(store::name_of(by[i]), cell.values[i]);
    const Sketch& time = cell.duration;
    point.set("launches", time.count());
    point.set("recorded", cell.recorded);
    point.set("gpu_s", time.total_ns() * 1e-9);
    point.set("mean_ns", time.mean_ns());
    point.set("min_ns", time.min_ns());
    point.set("max_ns", time.max_ns());
    point.set("p50_ns", time.quantile(0.5));
    point.set("p95_ns", time.quantile(0.95));
    if (with_histogram) point.set("histogram", analyze::histogram_json(time));
    points.push(std::move(point));
  }
  json.set("points", std::move(points));
  return add_coverage(reader, question.filter, json);
}

Status coverage(store::Reader& reader, const Question& question, Json& json) {
  PURLIN_ASSIGN(const store::Step step,
                parse_step(value_of(question.query, "step"), store::Step::kHour));
  PURLIN_ASSIGN(const std::vector<store::CoverageCell> cells,
                reader.coverage(of_coverage(question.filter), step));
  if (cells.size() > kMostPoints)
    return error(Code::kInvalid, "this has {} cells, over {}: give a longer step, or a node",
                 cells.size(), kMostPoints);
  Json list = Json::array();
  for (const store::CoverageCell& cell : cells)
    list.push(Json::object(
        {{"begin", format_rfc3339(cell.begin_ns)},
         {"node", cell.node},
         {"gpu", cell.gpu},
         {"model", cell.model},
         {"busy_s", cell.busy_ns * 1e-9},
         {"seen_s", cell.seen_ns * 1e-9},
         {"launches_seen", cell.launches_seen},
         {"launches_lost", cell.launches_lost},
         {"launches_sampled_out", cell.launches_sampled_out},
         {"overhead_s", cell.overhead_ns * 1e-9},
         {"overhead_pct", cell.seen_ns > 0 ? 100 * cell.overhead_ns / cell.seen_ns : 0},
         {"bad_timestamps", cell.bad_timestamps},
         {"why", cell.why}}));
  json.set("cells", std::move(list));
  return add_coverage(reader, question.filter, json);
}

Status values(store::Reader& reader, const Question& question, Json& json) {
  const std::string& name = value_of(question.query, "dimension");
  const std::optional<Dimension> dimension = store::dimension_of(name);
  if (!dimension)
    return error(Code::kInvalid, "'dimension' is the name of a filter, such as kernel or build");
  PURLIN_ASSIGN(std::vector<std::string> found, reader.values(*dimension, question.filter));
  json.set("dimension", name);
  json.set("values_in_all", found.size());
  if (found.size() > kMostValues) found.resize(kMostValues);
  json.set("values", Json::array_of(found));
  return Status::ok();
}

// One side of a comparison.
Result<store::Filter> side_of(const Question& question, const std::string& side) {
  store::Filter filter = question.filter;
  const std::string& by = value_of(question.query, "by");
  const std::string& value = value_of(question.query, side);
  if (value.empty()) return error(Code::kInvalid, "'{}' is missing", side);
  if (by == "time") {
    const std::size_t slash = value.find('/');
    if (slash == value.npos)
      return error(Code::kInvalid,
                   "'{}' is a time such as 2026-11-01T00:00:00Z/2026-11-08T00:00:00Z", side);
    PURLIN_ASSIGN(const store::Filter time, parse_filter({{"begin", value.substr(0, slash)},
                                                          {"end", value.substr(slash + 1)}},
                                                         question.now_ns));
    filter.begin_ns = time.begin_ns;
    filter.end_ns = time.end_ns;
    return filter;
  }
  const std::optional<Dimension> dimension = store::dimension_of(by);
  if (!dimension)
    return error(Code::kInvalid, "'by' is what differs: build, driver, runtime, job, … or time");
  filter[*dimension] = value;
  return filter;
}

Status compare(store::Reader& reader, const Question& question, Json& json) {
  PURLIN_ASSIGN(const store::Filter before, side_of(question, "before"));
  PURLIN_ASSIGN(const store::Filter after, side_of(question, "after"));
  PURLIN_ASSIGN(const std::vector<analysis::Cell> cells_before,
                read_cells(reader, before, store::Step::kAll));
  PURLIN_ASSIGN(const std::vector<analysis::Cell> cells_after,
                read_cells(reader, after, store::Step::kAll));
  PURLIN_ASSIGN(std::vector<analysis::CoverageCell> seen,
                read_coverage(reader, of_coverage(before)));
  if (before.begin_ns != after.begin_ns || before.end_ns != after.end_ns) {
    PURLIN_ASSIGN(const std::vector<analysis::CoverageCell> more,
                  read_coverage(reader, of_coverage(after)));
    seen.insert(seen.end(), more.begin(), more.end());
  }
  json.set("before", filter_json(before));
  json.set("after", filter_json(after));
  append_members(json, analysis::to_json(analysis::compare(cells_before, cells_after, seen, {})));
  json.set("coverage", analysis::to_json(analysis::summarise(seen)));
  return Status::ok();
}

Status slower(store::Reader& reader, const Question& question, Json& json) {
  PURLIN_ASSIGN(const std::vector<analysis::Cell> cells,
                read_cells(reader, question.filter, store::Step::kHour));
  PURLIN_ASSIGN(const std::vector<analysis::CoverageCell> seen,
                read_coverage(reader, of_coverage(question.filter)));
  append_members(json, analysis::to_json(analysis::got_slower(cells, seen, {})));
  json.set("coverage", analysis::to_json(analysis::summarise(seen)));
  return Status::ok();
}

Status stragglers(store::Reader& reader, const Question& question, Json& json) {
  PURLIN_ASSIGN(const std::vector<analysis::Cell> cells,
                read_cells(reader, question.filter, store::Step::kHour));
  append_members(json, analysis::to_json(analysis::find_stragglers(cells, {})));
  return add_coverage(reader, question.filter, json);
}

Status roofs(store::Reader& reader, const Question& question, Json& json) {
  PURLIN_ASSIGN(const std::size_t limit,
                parse_limit(value_of(question.query, "limit"), kTopByDefault, kMostTop));
  const std::string& by = value_of(question.query, "by");
  if (!by.empty() && by != "kernel" && by != "shape")
    return error(Code::kInvalid, "'by' is kernel or shape");
  PURLIN_ASSIGN(const std::vector<analysis::Cell> cells, read_totals(reader, question.filter));
  const auto rows = by == "shape" ? analysis::RoofsBy::kShape : analysis::RoofsBy::kKernel;
  json.set("roofs", analysis::to_json(analysis::find_roofs(cells, rows, limit)));
  return add_coverage(reader, question.filter, json);
}

Endpoint query(StoreGate& gate, Clock& clock, std::string_view name, std::string_view path,
               std::string_view schema, std::string_view summary, std::vector<Parameter> parameters,
               Answerer answer) {
  return {.method = "GET",
          .path = path,
          .scope = Scope::kRead,
          .kind = name,
          .summary = summary,
          .answer = schema,
          .parameters = filter_parameters(std::move(parameters)),
          .handle =
              [&gate, &clock, schema, answer = std::move(answer)](const Request& request) {
                const std::int64_t now_ns = clock.wall_ns();
                const Result<store::Filter> filter = parse_filter(request.query, now_ns);
                if (!filter.is_ok()) return error_answer(filter.status());
                const Question question{request.query, *filter, now_ns};
                Json json = answer_document(schema);
                json.set("filter", filter_json(*filter));
                const Status status = gate.read(
                    [&](store::Reader& reader) { return answer(reader, question, json); });
                return status.is_ok() ? json_answer(json) : error_answer(status);
              },
          .is_query = true};
}

}  // namespace

std::vector<Endpoint> query_endpoints(StoreGate& gate, Clock& clock) {
  const Parameter step{"step", "string", "all, hour, day or month"};
  return {
      query(gate, clock, "top", "/v1/query/top", "purlin.fleet.top/1",
            "Kernels by GPU time, with roles", {{"limit", "integer", "50 by default"}}, top),
      query(gate, clock, "roofs", "/v1/query/roofs", "purlin.fleet.roofs/1",
            "What bounds kernels, and how near they come to it",
            {{"limit", "integer", "50 by default"},
             {"by", "string", "kernel, or shape: a row for each shape, type and GPU model"}},
            roofs),
      query(gate, clock, "history", "/v1/query/history", "purlin.fleet.history/1",
            "Durations over time",
            {step,
             {"by", "string", "dimensions, with commas between"},
             {"histogram", "string", "1: each point has its distribution"}},
            history),
      query(gate, clock, "compare", "/v1/query/compare", "purlin.fleet.compare/1",
            "Two builds, drivers or weeks, with the mix of shapes held fixed",
            {{"by", "string", "what differs: build, driver, runtime, job, … or time"},
             {"before", "string", "its value, or BEGIN/END of a time"},
             {"after", "string", "its value, or BEGIN/END of a time"}},
            compare),
      query(gate, clock, "coverage", "/v1/query/coverage", "purlin.fleet.coverage/1",
            "How much of the GPUs' time was seen", {step}, coverage),
      query(gate, clock, "values", "/v1/query/values", "purlin.fleet.values/1",
            "The values of a filter", {{"dimension", "string", "name of the filter"}}, values),
      query(gate, clock, "slower", "/v1/query/slower", "purlin.fleet.slower/1",
            "Kernels that became slower", {}, slower),
      query(gate, clock, "stragglers", "/v1/query/stragglers", "purlin.fleet.stragglers/1",
            "GPUs that are slow against their peers or their past", {}, stragglers),
  };
}

}  // namespace purlin::fleet
