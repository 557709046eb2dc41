// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/facts.h"

#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {

namespace {

constexpr double kSameStep = 0.1;  // up to here, a replayed step is one of the unit

double known_step(const Profile& profile, const Unit& unit) {
  return unit.kind == "step" ? profile.coverage.step_ns : 0;
}

// The unit without the recorder, as the replay has it.
void take_baseline(const ReplayQuality& replay, double known_ns, Unit& unit) {
  const double base = unit.recorded_ns - unit.profiler_ns;
  if (unit.kind == "step") unit.long_steps = replay.long_steps;
  // What is replayed may have less than the unit, such as an evaluation between the steps, or more:
  // a run without steps has its one-off gaps.
  const double part = base / replay.recorded_ns;
  const bool alike = std::abs(part - 1) < kSameStep || unit.long_steps > 0;
  unit.baseline_ns = replay.baseline_ns * (unit.kind == "step" && alike ? 1 : part);
  const auto each_end = [&](const auto& change) {
    for (double* end : {&unit.baseline_ns.low, &unit.baseline_ns.mid, &unit.baseline_ns.high})
      *end = change(*end);
  };
  // The mean has steps that are not replayed: what the recorder adds to the others it adds to all.
  if (unit.long_steps > 0 && replay.recorded_ns < base)
    each_end([&](double end) { return end + base - replay.recorded_ns; });
  // Without the recorder the device still does its work.
  if (known_ns <= 0)
    each_end([&](double end) { return std::max(end, std::min(unit.busy_ns, base)); });
  const auto cost = [&](double baseline) { return std::max(0.0, base - baseline); };
  unit.recorder_ns = {cost(unit.baseline_ns.high), cost(unit.baseline_ns.mid),
                      cost(unit.baseline_ns.low)};
}

}  // namespace

Facts gather(const Profile& profile, const TimelineAnalysis& timeline,
             const std::vector<Ceilings>& measured, const TargetFractions& targets) {
  Facts facts;
  facts.profile = &profile;
  facts.timeline = &timeline;
  facts.targets = targets;
  facts.rows = build_rows(profile, GroupBy::kShape, measured, &facts.row_of);
  facts.profile_rows.resize(facts.rows.kernels.size());
  for (std::uint32_t i = 0; i < facts.row_of.size(); ++i)
    facts.profile_rows[facts.row_of[i]].push_back(i);
  facts.platform = platform_of(profile, facts.rows.kernels);
  facts.unit = unit_of(profile, timeline);
  facts.exposure = measure_exposure(profile);
  const auto replayer =
      std::make_shared<const Replayer>(profile, timeline, known_step(profile, facts.unit));
  if (facts.unit.kind != "kernel_time" && replayer->usable()) {
    facts.replayer = replayer;
    take_baseline(replayer->quality(), known_step(profile, facts.unit), facts.unit);
  }
  const double all = facts.unit.recorded_ns;
  facts.max_by_kernels = {all, all, all};
  if (facts.exposure.known) {
    double waited = facts.exposure.waited_ns;
    for (const QueueStats& queue : timeline.queues) waited += static_cast<double>(queue.full_ns);
    waited /= facts.unit.count * facts.unit.devices;
    const Interval3& recorder = facts.unit.recorder_ns;
    facts.max_by_kernels = {waited + recorder.low, waited + recorder.mid, waited + recorder.high};
  }
  std::vector<double> part(facts.rows.kernels.size()), whole(part.size());
  for (std::size_t i = 0; i < profile.kernels.size(); ++i) {
    const double ns = profile.kernels[i].duration.total_ns();
    part[facts.row_of[i]] += ns * facts.exposure.share[i];
    whole[facts.row_of[i]] += ns;
  }
  for (std::size_t i = 0; i < part.size(); ++i)
    facts.exposed.push_back(facts.without_recorder(whole[i] > 0 ? part[i] / whole[i] : 1));
  return facts;
}

// As much of what the host hides comes to light as of the idle time goes with the recorder.
Interval3 Facts::without_recorder(double share) const {
  const double base = unit.recorded_ns - unit.profiler_ns;
  const double idle = base > 0 ? 1 - unit.busy_ns / base : 0;
  const auto at = [&](double baseline) {
    if (idle <= 0 || baseline <= 0) return share;
    const double left = std::clamp((1 - unit.busy_ns / baseline) / idle, 0.0, 1.0);
    return share + (1 - share) * (1 - left);
  };
  return {share, at(unit.baseline_ns.mid), at(unit.baseline_ns.low)};
}

Interval3 Facts::end_to_end(std::size_t row, Interval3 saved) const {
  const Interval3& x = exposed[row];
  const double most = in_unit(rows.kernels[row].duration.total_ns()) * x.high;
  return bounded({in_unit(saved.low) * x.low, in_unit(saved.mid) * x.mid, in_unit(saved.high)},
                 most);
}

Interval3 Facts::capped(Interval3 saved) const {
  return {std::min(saved.low, max_by_kernels.low), std::min(saved.mid, max_by_kernels.mid),
          std::min(saved.high, max_by_kernels.high)};
}

const Ceilings* Facts::ceilings_of(const KernelStat& kernel) const {
  for (const Ceilings& ceilings : rows.ceilings)
    if (ceilings.device == kernel.device && !ceilings.empty()) return &ceilings;
  return nullptr;
}

double Facts::bandwidth_of(const KernelStat& kernel) const {
  const Ceilings* ceilings = ceilings_of(kernel);
  const Ceiling* dram = ceilings != nullptr ? ceilings->memory_for("dram") : nullptr;
  return dram != nullptr ? dram->peak : 0;
}

bool idles_between_queued(const Facts& facts) {
  double queued = 0, all = 0;
  for (const DeviceTime& device : facts.timeline->devices)
    for (std::size_t cause = 0; cause < device.idle_ns.size(); ++cause) {
      const auto ns = static_cast<double>(device.idle_ns[cause]);
      all += ns;
      if (cause == static_cast<std::size_t>(IdleCause::kKernelToKernel)) queued += ns;
    }
  return queued > 0.5 * all;
}

std::string of_total(double part_ns, double whole_ns) {
  if (whole_ns <= 0) return short_ns(part_ns);
  return fmt::format("{} of {} ({:.0f}%)", short_ns(part_ns), short_ns(whole_ns),
                     100 * part_ns / whole_ns);
}

std::string short_label(const KernelStat& kernel) { return clean(elide_middle(kernel.label, 60)); }

std::string problem_text(const KernelStat& kernel) {
  std::string shape = kernel.dtype;
  if (!kernel.shape.empty()) shape += (shape.empty() ? "" : " ") + kernel.shape;
  return short_label(kernel) + (shape.empty() ? "" : " [" + clean(shape) + "]");
}

}  // namespace purlin::analyze
