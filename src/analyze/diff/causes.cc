// SPDX-License-Identifier: Apache-2.0
#include "analyze/diff/causes.h"

#include "analyze/report/histogram.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

constexpr double kQuantile95 = 1.96;
constexpr int kFineBins = 4096;
// Clocks that differ by less are the same clock, read twice.
constexpr double kClockTolerance = 0.005;
constexpr double kMinShare = 0.005;  // of the larger side; a smaller change is none

// Squared standard error of the total, from the spread of single launches.
double variance_of_total(const DiffSide& side) {
  const double count = side.duration.count();
  if (count <= 0) return 0;
  const double mean = side.duration.mean_ns();
  double sum = 0;
  for (const Bin& bin : histogram(side.duration, kFineBins)) {
    const double value = std::clamp(std::sqrt(std::max(bin.low_ns, 0.5) * bin.high_ns),
                                    side.duration.min_ns(), side.duration.max_ns());
    sum += bin.count * (value - mean) * (value - mean);
  }
  // count is per unit; the launches measured are all of them.
  return side.count * side.count * sum / count / count;
}

std::string list_of(const std::vector<std::string>& texts) {
  return texts.empty() ? "unknown" : join(texts, ", ");
}

// What differs outside of the program; "" where nothing does.
std::string other_device(const Diff& diff) {
  if (diff.a.devices == diff.b.devices) return "";
  if (diff.a.devices.empty() || diff.b.devices.empty()) return "";  // not recorded: no evidence
  return fmt::format("GPU {} -> {}", list_of(diff.a.devices), list_of(diff.b.devices));
}

std::string other_driver(const Diff& diff) {
  if (diff.a.drivers == diff.b.drivers || diff.a.drivers.empty() || diff.b.drivers.empty())
    return "";
  return fmt::format("driver {} -> {}", list_of(diff.a.drivers), list_of(diff.b.drivers));
}

// The part of a change of duration that the environment explains.
double environment_part(DiffItem& item, const Diff& diff, double effect, bool memory_bound) {
  if (std::string device = other_device(diff); !device.empty()) {
    item.why.push_back(std::move(device));
    return effect;
  }
  const double clock_a = item.a.clock_mhz, clock_b = item.b.clock_mhz;
  if (clock_a > 0 && clock_b > 0) {
    const double mean_clock = (clock_a + clock_b) / 2;
    if (std::abs(clock_a - clock_b) > kClockTolerance * mean_clock && !memory_bound) {
      // As much as a kernel that follows the clock would change, and no more than there is.
      const double mean_total =
          (item.a.count + item.b.count) / 2 * (item.a.mean() + item.b.mean()) / 2;
      const double explained = mean_total * (clock_a - clock_b) / mean_clock;
      item.why.push_back(fmt::format("SM clock {:.0f} -> {:.0f} MHz", clock_a, clock_b));
      return effect > 0 ? std::clamp(explained, 0.0, effect) : std::clamp(explained, effect, 0.0);
    }
    return 0;
  }
  if (std::string driver = other_driver(diff); !driver.empty() && diff.a.build == diff.b.build) {
    item.why.push_back(std::move(driver));
    return effect;
  }
  return 0;
}

// Where one side's shapes were not recorded nothing says that they changed.
bool shapes_differ(const DiffItem& item) {
  std::vector<std::string> a = item.a.shapes, b = item.b.shapes;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return !a.empty() && !b.empty() && a != b;
}

std::string kernels_text(const DiffSide& side) {
  if (side.kernels.size() > 1) return fmt::format("{} kernels", side.kernels.size());
  return describe_kernel(side.kernels.front()).brief;
}

std::string shapes_text(const DiffSide& side) {
  if (side.shapes.size() == 1) return side.shapes.front();
  return fmt::format("{} and {} more", side.shapes.front(), side.shapes.size() - 1);
}

}  // namespace

void attribute(DiffItem& item, const Diff& diff, bool memory_bound) {
  Causes& causes = item.causes;
  item.change = item.b.total - item.a.total;
  if (item.match == Match::kNone || item.match == Match::kOpClass) {
    causes.gone = -item.a.total;
    causes.appeared = item.b.total;
    if (item.match == Match::kOpClass)
      item.why.push_back(
          fmt::format("{} gone, {} new", kernels_text(item.a), kernels_text(item.b)));
  } else {
    causes.count = (item.b.count - item.a.count) * (item.a.mean() + item.b.mean()) / 2;
    const double effect = item.change - causes.count;  // of longer or shorter launches
    if (item.match == Match::kKernelAndShape ||
        (item.match == Match::kKernel && !shapes_differ(item))) {
      causes.environment = environment_part(item, diff, effect, memory_bound);
      causes.duration = effect - causes.environment;
    } else if (item.match == Match::kKernel) {
      causes.shape = effect;
      item.why.push_back(fmt::format("{} -> {}", shapes_text(item.a), shapes_text(item.b)));
    } else {
      causes.kernel = effect;
      item.why.push_back(fmt::format("{} -> {}", kernels_text(item.a), kernels_text(item.b)));
    }
  }
  const double spread =
      kQuantile95 * std::sqrt(variance_of_total(item.a) + variance_of_total(item.b));
  const double error = std::hypot(spread, item.a.error * item.a.total, item.b.error * item.b.total);
  item.low = item.change - error;
  item.high = item.change + error;
  item.certain = (item.low > 0 || item.high < 0) &&
                 std::abs(item.change) > kMinShare * std::max(item.a.total, item.b.total);
}

}  // namespace purlin::analyze
