// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/watch.h"

#include "base/text.h"
#include "base/time.h"

namespace purlin::cli {
namespace {

constexpr double kPeriodS = 0.25;  // asking takes milliseconds of the driver

}  // namespace

TuneWatch::TuneWatch(const std::vector<DeviceInfo>& devices) {
  for (const DeviceInfo& device : devices) {
    if (device.uuid.empty()) continue;
    Result<std::unique_ptr<gpu::Monitor>> monitor = gpu::open_monitor(device);
    if (!monitor.is_ok()) continue;
    Watched& made = watched_.emplace_back();
    made.monitor = std::move(monitor).value();
    made.watch = std::make_unique<guard::Watch>(*made.monitor, system_clock(), kPeriodS);
    made.watch->begin();
  }
}

std::optional<guard::Conditions> TuneWatch::end(Log& log) {
  if (watched_.empty()) return std::nullopt;
  guard::Conditions all;
  bool protects = false;
  for (Watched& each : watched_) {
    // Who else came is not asked here: workers that were started again look the same.
    const guard::Conditions seen = each.watch->end();
    protects |= seen.unfit.find("slowed itself down") != std::string::npos;
    all.merge(seen);
  }
  watched_.clear();
  if (all.limits.empty()) return all;
  const std::string what = fmt::format(
      "something held the clock down meanwhile ({}; {:.0f} to {:.0f} MHz, {:.0f} C, {:.0f} W)",
      join({all.limits.begin(), all.limits.end()}, ", "), all.lowest_clock_mhz,
      all.highest_clock_mhz, all.highest_temperature_c, all.highest_power_w);
  // A power cap is the kernels' own doing, and in the finals, which take turns, falls on all alike.
  if (protects)
    log.warn("{}: the device protects itself, so these times are of a slower one", what);
  else
    log.info("{}", what);
  return all;
}

}  // namespace purlin::cli
