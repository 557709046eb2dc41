// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/lists.h"

#include "analyze/advise/rules/pricing.h"
#include "analyze/report/identity.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

constexpr double kSmallListedRow = 0.002;  // of the unit
constexpr double kNoise = 0.05;            // of a launch's duration: less is no regression

std::string kernel_id(const Facts& facts, std::string_view full_name) {
  for (const KernelStat& kernel : facts.rows.kernels)
    if (kernel.name.full == full_name) return row_id(kernel, GroupBy::kKernel);
  return "";
}

// By time to the target, end to end: what the fleet loses by it.
void list_tunable(const Facts& facts, std::size_t most, Advice& advice) {
  std::vector<ListedKernel> all;
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    const Target target = target_of(kernel.roof, facts.targets);
    if (target.fraction <= 0 || target.reached()) continue;
    // Above 0.6 of the roof, and for launches that are too short, tuning is not what helps.
    if (kernel.roof.utilization >= 0.6 || is_short_launch(kernel)) continue;
    if (kernel.roof.bound == Bound::kLatency && kernel.roof.bound_from == "launch") continue;
    const double ns = facts.in_unit(kernel.duration.total_ns());
    const double saved =
        std::min(ns * std::min(target.saved_share, most_by_tuning(kernel)) * facts.exposed[i].mid,
                 facts.max_by_kernels.mid);
    if (saved < kSmallListedRow * facts.unit.baseline_ns.mid) continue;
    ListedKernel item;
    item.label = kernel.label;
    item.shape = kernel.shape;
    item.dtype = kernel.dtype;
    item.op_class = kernel.name.op_class;
    item.kernel_id = row_id(kernel, GroupBy::kKernel);
    item.share = kernel.share;
    item.saved_ns = saved;
    item.utilization = kernel.roof.utilization;
    item.target = target.fraction;
    item.why = fmt::format("{} bound at {:.0f}% of the {} roof, target {:.0f}%",
                           to_text(kernel.roof.bound), 100 * kernel.roof.utilization,
                           clean(kernel.roof.ceiling), 100 * target.fraction);
    item.next = "report --kernel";
    all.push_back(std::move(item));
  }
  std::stable_sort(all.begin(), all.end(), [](const ListedKernel& a, const ListedKernel& b) {
    return a.saved_ns > b.saved_ns;
  });
  if (all.size() > most) all.resize(most);
  advice.tune = std::move(all);
}

// Launches that got longer, not more of them: certain, and by more than noise.
void list_slower(const Facts& facts, const Diff& diff, std::size_t most, Advice& advice) {
  for (const DiffItem& item : diff.items) {
    if (advice.slower.size() >= most) break;
    const double longer = item.a.mean() > 0 ? item.b.mean() / item.a.mean() - 1 : 0;
    if (!item.certain || item.change <= 0 || longer <= kNoise) continue;
    ListedKernel out;
    out.label = item.label;
    out.shape = item.shape;
    out.dtype = item.dtype;
    out.op_class = item.op_class;
    out.kernel_id = kernel_id(facts, item.name);
    out.saved_ns = item.change;
    out.why = fmt::format("{} -> {} a launch (+{:.0f}%)", short_ns(item.a.mean()),
                          short_ns(item.b.mean()), 100 * longer);
    if (!item.why.empty()) out.why += ": " + clean(join(item.why, ", "));
    out.next = "diff";
    advice.slower.push_back(std::move(out));
  }
}

}  // namespace

void add_lists(const Facts& facts, const AdviceOptions& options, Advice& advice) {
  list_tunable(facts, options.list, advice);
  if (options.against == nullptr) return;
  advice.against = options.against->a.path;
  list_slower(facts, *options.against, options.list, advice);
}

void add_alerts(const Facts& facts, Advice& advice) {
  const auto add = [&](const char* id, double value, double threshold, double critical,
                       std::string text) {
    if (value >= threshold)
      advice.alerts.push_back({id, value >= critical ? "critical" : "warning", value, threshold, "",
                               "", std::move(text)});
  };
  const Unit& unit = facts.unit;
  const double whole = unit.recorded_ns - unit.profiler_ns;
  const double share = whole > 0 ? 1 / (whole * unit.count * unit.devices) : 0;
  double starved = 0, exposed_communication = 0, exposed_copies = 0, copies = 0, overlapped = 0;
  for (const DeviceTime& device : facts.timeline->devices) {
    starved +=
        static_cast<double>(device.idle_ns[static_cast<std::size_t>(IdleCause::kDataStarvation)]) *
        share;
    exposed_communication += static_cast<double>(device.exposed_communication_ns) * share;
    exposed_copies += static_cast<double>(device.exposed_copy_ns) * share;
    copies += static_cast<double>(device.copy_ns);
    overlapped += static_cast<double>(device.compute_and_copy_ns);
  }
  add("device_idle", advice.idle_share, 0.5, 0.8,
      fmt::format("the device idles {:.0f}% of the time", 100 * advice.idle_share));
  add("data_starvation", starved, 0.05, 0.3,
      fmt::format("the device waits for input {:.0f}% of the time", 100 * starved));
  add("exposed_communication", exposed_communication, 0.1, 0.3,
      fmt::format("communication that nothing hides takes {:.0f}% of the time",
                  100 * exposed_communication));
  if (copies > 0 && overlapped < 0.5 * copies)
    add("copies_not_overlapped", exposed_copies, 0.05, 0.3,
        fmt::format(
            "{:.0f}% of the copies run during computation; alone they take {:.0f}% of the time",
            100 * overlapped / copies, 100 * exposed_copies));
  add("tensor_cores_idle", advice.tensor.idle, 0.1, 0.5,
      fmt::format("products on the vector units take {:.0f}% of the kernel time",
                  100 * advice.tensor.idle));
  for (const KernelStat& kernel : facts.rows.kernels)
    if (!kernel.roof.cannot_launch.empty())
      advice.alerts.push_back({"cannot_launch", "critical", kernel.share, 0, kernel.label,
                               kernel_id(facts, kernel.name.full),
                               fmt::format("{} cannot launch on this GPU: {}; the file names "
                                           "another GPU, or its launch facts are wrong",
                                           short_label(kernel), kernel.roof.cannot_launch)});
  const Coverage& coverage = facts.profile->coverage;
  const double lost =
      coverage.launches_counted > 0 ? coverage.launches_lost / coverage.launches_counted : 0;
  add("launches_lost", lost, 0.001, 0.05,
      fmt::format("{:.1f}% of the launches were lost: shares are of the rest", 100 * lost));
  for (const CoverageNote& note : coverage.notes)
    if (note.cause == "launches_failed")
      advice.alerts.push_back({"launches_failed", "critical", note.count, 0, "", "",
                               fmt::format("{:.0f} {}", note.count, clean(note.text))});
  if (facts.profile->partial)
    advice.alerts.push_back(
        {"partial", "warning", 1, 1, "", "",
         "the profile is damaged or was cut short: results cover the remaining part only"});
  for (const ListedKernel& slower : advice.slower)
    advice.alerts.push_back({"got_slower", "warning",
                             unit.baseline_ns.mid > 0 ? slower.saved_ns / unit.baseline_ns.mid : 0,
                             0, slower.label, slower.kernel_id,
                             clean(slower.label) + ": " + slower.why});
}

}  // namespace purlin::analyze
