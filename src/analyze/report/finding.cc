// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/finding.h"

#include "analyze/report/selection.h"
#include "analyze/stalls/stalls.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kMinShareShown = 0.05;  // of the time analysed

struct Totals {  // over all devices
  double span = 0, busy = 0, exposed_communication = 0, exposed_copies = 0;
  std::array<double, kIdleCauses> idle = {};
};

Totals totals_of(const TimelineAnalysis& timeline) {
  Totals out;
  for (const DeviceTime& device : timeline.devices) {
    const double communication =
        static_cast<double>(device.communication_ns - device.compute_and_communication_ns);
    out.span += static_cast<double>(device.span_ns);
    out.busy += static_cast<double>(device.busy_ns);
    out.exposed_communication += communication;
    out.exposed_copies += static_cast<double>(device.busy_ns - device.compute_ns) - communication;
    for (std::size_t i = 0; i < kIdleCauses; ++i)
      out.idle[i] += static_cast<double>(device.idle_ns[i]);
  }
  return out;
}

std::string rounded_percent(double share) { return fmt::format("{:.0f}%", share * 100); }

// The idle share of a step as the program has it, where recording made the steps longer.
double idle_before_trace(const TimelineAnalysis& timeline, double idle, double step_ns) {
  const auto recorded = static_cast<double>(timeline.mean_step.duration_ns);
  if (step_ns <= 0 || recorded <= step_ns) return idle;
  return std::max(0.0, 1 - (1 - idle) * recorded / step_ns);
}

// `step_ns`: Coverage::step_ns.
void find_idle(const TimelineAnalysis& timeline, const Totals& totals, double step_ns,
               std::vector<Finding>& findings) {
  const double recorded = (totals.span - totals.busy) / totals.span;
  const double idle = idle_before_trace(timeline, recorded, step_ns);
  if (idle < kMinShareShown) return;
  std::vector<std::pair<double, std::string>> causes;
  for (std::size_t i = 0; i < kIdleCauses; ++i) {
    const double share = totals.idle[i] / totals.span;
    const auto cause = static_cast<IdleCause>(i);
    if (share >= 0.01)
      causes.emplace_back(
          share, (cause == IdleCause::kOther ? "no cause found" : spaced_words(to_text(cause))) +
                     " " + rounded_percent(share));
  }
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const std::size_t devices = timeline.devices.size();
  const std::string gpus = devices > 1 ? fmt::format("{} GPUs", devices) : std::string("GPU");
  std::string text =
      idle == recorded ? fmt::format("{} idle {} of {}", gpus, rounded_percent(idle),
                                     short_ns(totals.span / static_cast<double>(devices)))
                       : fmt::format("{} idle {} of a step of {}; while recorded, at {} a step, {}",
                                     gpus, rounded_percent(idle), short_ns(step_ns),
                                     short_ns(static_cast<double>(timeline.mean_step.duration_ns)),
                                     rounded_percent(recorded));
  for (std::size_t i = 0; i < std::min<std::size_t>(3, causes.size()); ++i)
    text += (i == 0 ? ": " : ", ") + causes[i].second;
  findings.push_back({"idle", idle, text});
}

void find_exposed(const Totals& totals, std::vector<Finding>& findings) {
  const double communication = totals.exposed_communication / totals.span;
  if (communication >= kMinShareShown)
    findings.push_back({"communication", communication,
                        fmt::format("communication that no computation hides takes {} of the time",
                                    rounded_percent(communication))});
  const double copies = totals.exposed_copies / totals.span;
  if (copies >= kMinShareShown)
    findings.push_back({"copies", copies,
                        fmt::format("memcpy and memset that no kernel hides take {} of the time",
                                    rounded_percent(copies))});
}

std::string subject(const KernelStat& kernel) { return clean(elide_middle(kernel.label, 60)); }

// The kernel with most time above its roof.
void find_headroom(const Report& report, double busy_share, std::vector<Finding>& findings) {
  const KernelStat* best = nullptr;
  for (const KernelStat& kernel : report.kernels)
    if (headroom_ns(kernel) > (best == nullptr ? 0 : headroom_ns(*best))) best = &kernel;
  if (best == nullptr || report.kernel_ns <= 0) return;
  const double headroom = headroom_ns(*best) / report.kernel_ns;
  if (headroom < kMinShareShown) return;
  std::string shape = best->dtype;
  if (!best->shape.empty()) shape += (shape.empty() ? "" : " ") + best->shape;
  if (!shape.empty()) shape = " [" + clean(shape) + "]";
  findings.push_back({"kernel", headroom * busy_share,
                      fmt::format("{}{} owns {} of the kernel time at {} of the {} roof",
                                  subject(*best), shape, rounded_percent(best->share),
                                  rounded_percent(best->roof.utilization), best->roof.ceiling)});
}

// The share of the kernel with most time. Where its distance to a roof is not known, its stake is
// not either: it comes before findings that are small in comparison.
void add_share(const KernelStat& kernel, double busy_share, std::vector<Finding>& findings) {
  constexpr double kSmall = 0.1;
  const bool known = kernel.roof.utilization > 0;
  const double small = known ? 0 : kSmall * kernel.share * busy_share;
  const auto place = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& finding) { return finding.share < small; });
  findings.insert(
      place, {"share", 0,
              fmt::format("{} owns {} of the kernel time in {}{}", subject(kernel),
                          rounded_percent(kernel.share), counted(kernel.duration.count(), "launch"),
                          known ? "" : "; its distance to the roof is not known")});
}

// The sampled stall reasons of the heaviest kernels.
void find_stalls(const Report& report, std::vector<Finding>& findings) {
  constexpr std::size_t kKernels = 3;
  std::size_t found = 0;
  for (const KernelStat& kernel : report.kernels) {
    if (found == kKernels) return;
    const StallTable stalls = read_stalls(kernel.counters, kernel.sampled);
    const auto reasons = stalls.findings();
    if (reasons.empty()) continue;
    const StallReason& most = *reasons.front();
    ++found;
    const StallLine* line = kernel.sampled.most_of(most.name);
    findings.push_back(
        {"stall", 0,
         fmt::format(
             "warps of {} wait: {}, {} of the stalls{}{}", subject(kernel), clean(most.name),
             rounded_percent(most.stalled), most.meaning.empty() ? "" : " (" + most.meaning + ")",
             line == nullptr ? "" : ", most at " + clean(elide_middle(line->where(), 60)))});
  }
}

}  // namespace

std::vector<Finding> find(const Report& report) {
  std::vector<Finding> findings;
  double busy_share = 1;
  const Totals totals = totals_of(report.timeline);
  if (totals.span > 0) {
    busy_share = totals.busy / totals.span;
    find_idle(report.timeline, totals, report.coverage.step_ns, findings);
    find_exposed(totals, findings);
  }
  find_headroom(report, busy_share, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.share > b.share; });
  const auto first =
      std::max_element(report.kernels.begin(), report.kernels.end(),
                       [](const KernelStat& a, const KernelStat& b) { return a.share < b.share; });
  // The headroom finding reports it already.
  const auto about_it = [&](const Finding& finding) {
    return finding.kind == "kernel" && starts_with(finding.text, subject(*first));
  };
  if (first != report.kernels.end() && report.launches <= 0)
    findings.push_back({"nothing", 0,
                        "counters of kernels were recorded, but no durations: the distribution of "
                        "the time is not known"});
  else if (first != report.kernels.end() &&
           std::none_of(findings.begin(), findings.end(), about_it))
    add_share(*first, busy_share, findings);
  find_stalls(report, findings);
  if (findings.empty()) findings.push_back({"nothing", 0, "no kernels were recorded"});
  return findings;
}

}  // namespace purlin::analyze
