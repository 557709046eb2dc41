// SPDX-License-Identifier: Apache-2.0
#include "guard/report/otlp.h"

#include "profile/export/otlp.h"

namespace purlin::guard {
namespace {

using profile::OtlpAttributes;
using profile::OtlpMetrics;

// An item has one verdict of these, with the value 1.
constexpr OtlpMetrics::Kind
    kVerdict = {"purlin.guard.verdict", "1", "1 for the verdict of an item of a suite"},
    kSuite = {"purlin.guard.suite.verdict", "1", "1 for the verdict of a suite"},
    kRatio = {"purlin.guard.ratio", "1", "Time now over time before; above 1 is slower"},
    kLow = {"purlin.guard.ratio.low", "1", "Low end of its interval"},
    kHigh = {"purlin.guard.ratio.high", "1", "High end of its interval"},
    kBaselineTime = {"purlin.guard.baseline.duration", "ns", "Median time of the baseline"},
    kNow = {"purlin.guard.current.duration", "ns", "Median time of the current state"};

OtlpAttributes resource_of(const Report& report) {
  OtlpAttributes out;
  out.add("service.name", "purlin").add("purlin.suite", report.suite);
  out.add("os.description", report.environment.host_os);
  out.add("purlin.build", report.environment.build);
  if (report.environment.devices.size() == 1) {
    const DeviceInfo& device = report.environment.devices.front();
    out.add("gpu.id", device.id).add("gpu.name", device.name);
  }
  return out;
}

OtlpAttributes item_of(const ReportItem& item) {
  OtlpAttributes out;
  return out.add("kernel", item.kernel).add("shape", item.shape).add("variant", item.variant);
}

}  // namespace

Json to_otlp(const Report& report, std::int64_t now_ns) {
  OtlpMetrics out(resource_of(report), {now_ns, now_ns});
  out.gauge(kSuite, OtlpAttributes().add("verdict", verdict_name(report.verdict())),
            std::int64_t{1});
  for (const ReportItem& item : report.items) {
    const OtlpAttributes attributes = item_of(item);
    out.gauge(kVerdict,
              item_of(item)
                  .add("verdict", verdict_name(item.result.verdict))
                  .add("cause", item.result.cause),
              std::int64_t{1});
    if (item.result.effect.pairs <= 0) continue;
    out.gauge(kRatio, attributes, item.result.effect.ratio);
    out.gauge(kLow, attributes, item.result.effect.low);
    out.gauge(kHigh, attributes, item.result.effect.high);
    out.gauge(kBaselineTime, attributes, item.result.baseline_ns);
    out.gauge(kNow, attributes, item.result.current_ns);
  }
  return out.request();
}

}  // namespace purlin::guard
