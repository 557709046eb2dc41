// SPDX-License-Identifier: Apache-2.0
#include "guard/report/benchmark_formats.h"

#include <algorithm>

namespace purlin::guard {
namespace {

// Both services tell series apart by this name alone.
std::string series_name(const ReportItem& item) {
  std::string name = item.kernel;
  if (!item.shape.empty()) name += " " + item.shape;
  if (!item.variant.empty()) name += " (" + item.variant + ")";
  return name;
}

struct CurrentTime {
  double value_ns = 0, low_ns = 0, high_ns = 0;
};

// The interval of the ratio, at the baseline's time: it holds the value.
CurrentTime current_time(const ItemResult& result) {
  const double low = result.baseline_ns * result.effect.low;
  const double high = result.baseline_ns * result.effect.high;
  return {result.current_ns, std::min(low, result.current_ns), std::max(high, result.current_ns)};
}

bool has_time(const ReportItem& item) {
  return item.result.effect.pairs > 0 && item.result.current_ns > 0;
}

}  // namespace

Json to_action_benchmark(const Report& report) {
  Json list = Json::array();
  for (const ReportItem& item : report.items) {
    if (!has_time(item)) continue;
    const CurrentTime time = current_time(item.result);
    list.push(Json::object({{"name", series_name(item)},
                            {"unit", "ns"},
                            {"value", time.value_ns},
                            {"range", fmt::format("{:.0f} to {:.0f}", time.low_ns, time.high_ns)},
                            {"extra", fmt::format("{}, {:.3f}x of the baseline, {} pairs",
                                                  verdict_name(item.result.verdict),
                                                  item.result.effect.ratio, item.result.pairs)}}));
  }
  return list;
}

Json to_bencher(const Report& report) {
  Json names = Json::object();
  for (const ReportItem& item : report.items) {
    if (!has_time(item)) continue;
    const CurrentTime time = current_time(item.result);
    names.set(series_name(item),
              Json::object({{"latency", Json::object({{"value", time.value_ns},
                                                      {"lower_value", time.low_ns},
                                                      {"upper_value", time.high_ns}})}}));
  }
  return names;
}

}  // namespace purlin::guard
