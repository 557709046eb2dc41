// SPDX-License-Identifier: Apache-2.0
// The diff for programs: JSON (purlin.diff/1, docs/formats/diff.md) and CSV.
#include "analyze/diff/diff.h"
#include "analyze/text/number.h"
#include "base/csv.h"
#include "base/text.h"
#include "model/document.h"

#include <fmt/format.h>

#include <cmath>

namespace purlin::analyze {
namespace {

// Thousandths of a nanosecond, so that parts still add up to their sum as written.
Json whole_ns(double value) {
  const double rounded = std::round(value * 1000) / 1000;
  if (rounded == std::floor(rounded) && std::abs(rounded) < 0x1p53)
    return static_cast<std::int64_t>(rounded);
  return rounded;
}

Json causes_json(const Causes& causes) {
  return Json::object({{"count_ns", whole_ns(causes.count)},
                       {"duration_ns", whole_ns(causes.duration)},
                       {"shape_ns", whole_ns(causes.shape)},
                       {"kernel_ns", whole_ns(causes.kernel)},
                       {"environment_ns", whole_ns(causes.environment)},
                       {"gone_ns", whole_ns(causes.gone)},
                       {"new_ns", whole_ns(causes.appeared)}});
}

Json side_json(const DiffSide& side) {
  if (side.count <= 0) return {};
  const auto known = [](double value) { return value > 0 ? number(value) : Json(); };
  return Json::object({{"count", number(side.count)},
                       {"total_ns", whole_ns(side.total)},
                       {"mean_ns", whole_ns(side.mean())},
                       {"p50_ns", whole_ns(side.duration.quantile(0.5))},
                       {"p95_ns", whole_ns(side.duration.quantile(0.95))},
                       {"clock_mhz", known(side.clock_mhz)},
                       {"flops_per_s", known(side.flops_per_s)},
                       {"bytes_per_s", known(side.bytes_per_s)},
                       {"occupancy", known(side.occupancy)},
                       {"tensor_share", known(side.tensor_share)},
                       {"kernels", Json::array_of(side.kernels)},
                       {"shapes", Json::array_of(side.shapes)}});
}

Json item_json(const DiffItem& item) {
  return Json::object(
      {{"name", item.name},
       {"label", item.label},
       {"op_class", item.op_class},
       {"op", item.op},
       {"shape", item.shape},
       {"dtype", item.dtype},
       {"match", to_text(item.match)},
       {"change_ns", whole_ns(item.change)},
       {"change_share", item.a.total > 0 ? Json(item.change / item.a.total) : Json()},
       {"interval_ns", Json::object({{"low", whole_ns(item.low)}, {"high", whole_ns(item.high)}})},
       {"certain", item.certain},
       {"causes", causes_json(item.causes)},
       {"why", Json::array_of(item.why)},
       {"a", side_json(item.a)},
       {"b", side_json(item.b)}});
}

Json step_change_json(const StepTime& step) {
  return Json::object({{"duration_ns", step.duration_ns},
                       {"kernel_ns", step.kernel_ns},
                       {"communication_ns", step.communication_ns},
                       {"copy_ns", step.copy_ns},
                       {"set_ns", step.set_ns},
                       {"runtime_ns", step.runtime_ns},
                       {"data_loader_ns", step.data_loader_ns},
                       {"cpu_ns", step.cpu_ns},
                       {"other_ns", step.other_ns}});
}

Json totals_json(const DiffTotals& totals, bool per_step) {
  return Json::object({{"path", totals.path},
                       {"command", totals.command},
                       {"source", totals.source},
                       {"build", totals.build},
                       {"recorded_at", totals.recorded_at},
                       {"devices", Json::array_of(totals.devices)},
                       {"drivers", Json::array_of(totals.drivers)},
                       {"units", number(totals.units)},
                       {"launches", number(totals.launches)},
                       {"kernel_ns", whole_ns(totals.kernel)},
                       {"copy_ns", whole_ns(totals.copy)},
                       {"outside_ns", whole_ns(totals.outside)},
                       {"step", per_step ? step_change_json(totals.step) : Json()},
                       {"partial", totals.partial}});
}

Json items_json(const std::vector<DiffItem>& items) {
  Json out = Json::array();
  for (const DiffItem& item : items) out.push(item_json(item));
  return out;
}

}  // namespace

Json to_json(const Diff& diff) {
  Json out = new_document("purlin.diff/1", Environment{});
  out.set("unit", diff.per_step ? "step" : "run");
  out.set("a", totals_json(diff.a, diff.per_step));
  out.set("b", totals_json(diff.b, diff.per_step));
  out.set("change_ns", whole_ns(diff.change));
  out.set("causes", causes_json(diff.causes));
  out.set("items", items_json(diff.items));
  out.set("copies", items_json(diff.copies));
  out.set("notes", Json::array_of(diff.notes));
  return out;
}

std::string to_csv(const Diff& diff) {
  std::string out =
      "name,label,op_class,op,shape,dtype,match,change_ns,low_ns,high_ns,certain,count_ns,"
      "duration_ns,shape_ns,kernel_ns,environment_ns,gone_ns,new_ns,a_count,a_total_ns,a_p50_ns,"
      "a_p95_ns,b_count,b_total_ns,b_p50_ns,b_p95_ns,why\r\n";
  for (const std::vector<DiffItem>* list : {&diff.items, &diff.copies})
    for (const DiffItem& item : *list) {
      std::vector<std::string> fields;
      for (std::string_view text :
           {std::string_view(item.name), std::string_view(item.label), item.op_class,
            std::string_view(item.op), std::string_view(item.shape), std::string_view(item.dtype),
            to_text(item.match)})
        fields.push_back(csv_text(text));
      for (double value : {item.change, item.low, item.high})
        fields.push_back(whole_ns(value).dump());
      fields.emplace_back(item.certain ? "true" : "false");
      const Json causes = causes_json(item.causes);
      for (const Json::Member& cause : causes.members()) fields.push_back(cause.value.dump());
      for (const DiffSide* side : {&item.a, &item.b}) {
        const Json json = side_json(*side);
        for (const char* key : {"count", "total_ns", "p50_ns", "p95_ns"})
          fields.push_back(json.is_null() ? "" : json[key].dump());
      }
      fields.push_back(csv_text(join(item.why, "; ")));
      out += join(fields, ",") + "\r\n";
    }
  return out;
}

}  // namespace purlin::analyze
