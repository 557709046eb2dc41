// SPDX-License-Identifier: Apache-2.0
#include "analyze/page/report_document.h"

#include "analyze/page/sparks.h"
#include "analyze/report/histogram.h"
#include "analyze/report/selection.h"
#include "base/text.h"

#include <fmt/format.h>

#include <map>

namespace purlin::analyze {
namespace {

// Names keep most of their length: those of PyTorch's kernels run to thousands of characters.
void shorten(Json& rows, const PageLimits& limits) {
  const std::size_t max_characters = limits.name_characters;
  Json out = Json::array();
  for (const Json& row : rows.items()) {
    Json copy = row;
    for (const char* key : {"name", "label", "op", "shape"}) {
      const std::size_t fits =
          key == std::string_view("name") ? max_characters : limits.label_characters;
      if (copy[key].as_string().size() > fits)
        copy.set(key, elide_middle(copy[key].as_string(), fits));
    }
    out.push(std::move(copy));
  }
  rows = std::move(out);
}

// Cuts a list of the document and returns how many items that left out.
std::size_t cut(Json& parent, std::string_view key, std::size_t max_items) {
  const Json& list = parent[key];
  const std::size_t all = list.size();
  if (all <= max_items) return 0;
  Json kept = Json::array();
  for (std::size_t i = 0; i < max_items; ++i) kept.push(list.items()[i]);
  parent.set(key, std::move(kept));
  return all - max_items;
}

class ReportHead {
 public:
  ReportHead(const Report& report, const Report& by_launch, const Profile& whole,
             const PageLimits& limits)
      : report_(report), by_launch_(by_launch), whole_(whole), limits_(limits) {}

  Json document() const {
    Json out = to_json(report_, limits_.kernels);
    Json kernels = out["kernels"];
    shorten(kernels, limits_);
    out.set("kernels", std::move(kernels));
    Json page = Json::object({{"rows", report_.kernels.size()}, {"other", other()}});
    page.set("processes_left_out", cut(out, "processes", limits_.processes));
    if (Json timeline = out["timeline"]; timeline.is_object()) {
      page.set("steps_left_out", cut(timeline, "steps", limits_.steps));
      out.set("timeline", std::move(timeline));
    }
    page.set("details", details());
    out.set("page", std::move(page));
    return out;
  }

 private:
  std::size_t shown() const { return std::min(limits_.kernels, report_.kernels.size()); }

  Json other() const {
    double count = 0, total = 0, share = 0;
    for (std::size_t i = shown(); i < report_.kernels.size(); ++i) {
      count += report_.kernels[i].duration.count();
      total += report_.kernels[i].duration.total_ns();
      share += report_.kernels[i].share;
    }
    return Json::object({{"rows", report_.kernels.size() - shown()},
                         {"count", count},
                         {"total_ns", total},
                         {"share", share}});
  }

  Json details() const {
    struct Shapes {
      Report kept;  // rows by launch shape, most time first
      std::size_t all = 0;
    };
    std::map<std::string, Shapes> shapes;
    for (std::size_t i = 0; i < shown(); ++i) shapes[row_key(report_.kernels[i], report_.group_by)];
    std::size_t kept = 0;
    for (const KernelStat& row : by_launch_.kernels) {
      // A row that is one launch shape needs no list of it.
      if (report_.group_by == GroupBy::kLaunch) break;
      const auto group = shapes.find(row_key(row, report_.group_by));
      if (group == shapes.end()) continue;
      ++group->second.all;
      if (group->second.kept.kernels.size() >= limits_.shapes_per_kernel || kept >= limits_.shapes)
        continue;
      group->second.kept.kernels.push_back(row);
      ++kept;
    }
    const Sparks sparks = sparks_of(whole_, report_, shown());
    Json out = Json::array();
    for (std::size_t i = 0; i < shown(); ++i) {
      const KernelStat& kernel = report_.kernels[i];
      const Shapes& group = shapes[row_key(kernel, report_.group_by)];
      const Json document = to_json(group.kept);
      Json rows = Json::array();
      for (const Json& row : document["kernels"].items()) rows.push(shape_json(row));
      shorten(rows, limits_);
      Json detail = Json::object();
      detail.set("histogram", histogram_json(kernel.duration));
      detail.set("shapes_left_out", group.all - rows.size());
      detail.set("shapes", std::move(rows));
      if (!sparks[i].empty()) detail.set("spark", Json::array_of(sparks[i]));
      out.push(std::move(detail));
    }
    return out;
  }

  // What the drill-down shows of a launch shape: a row of `kernels` without what it repeats.
  static Json shape_json(const Json& row) {
    Json out = Json::object();
    for (const char* key : {"label", "op", "shape", "dtype", "dtype_from", "count", "total_ns",
                            "p50_ns", "p95_ns", "share", "bound", "utilization", "launch"})
      out.set(key, row[key]);
    // Where the bound comes from: a guess is marked as such in every row.
    if (row["roof"].is_object())
      out.set("roof", Json::object({{"bound_from", row["roof"]["bound_from"]}}));
    return out;
  }

  const Report& report_;
  const Report& by_launch_;
  const Profile& whole_;
  const PageLimits& limits_;
};

}  // namespace

Json report_head(const Report& report, const Report& by_launch, const Profile& whole,
                 const PageLimits& limits) {
  return ReportHead(report, by_launch, whole, limits).document();
}

}  // namespace purlin::analyze
