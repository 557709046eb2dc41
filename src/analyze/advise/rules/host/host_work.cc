// SPDX-License-Identifier: Apache-2.0
// The host launches late, for all kinds of reasons.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/loop.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kManyRounds = 8, kSomeLoops = 0.2;
constexpr double kWorstOther = 0.9;

// Of the host's time, what stays.
Interval3 host_left(const LoopShare& loops) {
  if (loops.launches < kSomeLoops) return {kWorstOther, 0.5, kLoopLeft.high};
  return {kLoopLeft.low, std::max(kLoopLeft.mid, 1 / loops.rounds), kLoopLeft.high};
}

}  // namespace

void add_host_work_rule(HostView& view) {
  const double gap = view.unit.host_ns - view.stalled_ns;
  if (gap < kLaunchBound * view.length) return;
  const Interval3 recorder = view.unit.recorder_ns * (gap / view.unit.host_ns);
  const LoopShare loops = share_of_loops(view.facts, kManyRounds);
  const Interval3 left = host_left(loops);
  Intervention out = from_remedy("cut_host_work");
  out.evidence.push_back(
      {"device idle because the host launches late", view.part(gap), "timeline"});
  view.add_longest(IdleCause::kHostLaunch, out);
  if (!view.hindrance.empty())
    out.how.push_back("CUDA: a repeated sequence could be a CUDA graph without: " +
                      clean(view.hindrance));
  if (loops.launches >= kSomeLoops)
    out.evidence.push_back({"launches in loops within a step",
                            fmt::format("{}, {:.0f} rounds of the same kernels",
                                        percent(loops.launches), loops.rounds),
                            "timeline"});
  out.assumptions.push_back(fmt::format(
      "{:.2f} of the host's work stays, {:.2f} to {:.2f}; the recorder slowed the host by {} to {}",
      left.mid, left.high, left.low, short_ns(recorder.low), short_ns(recorder.high)));
  if (view.graphed_ns > 0.5 * gap) {
    out.alternative = true;
    out.assumptions.emplace_back(
        "the CUDA graph saves most of the same time: this is what to do instead of it");
  }
  if (loops.launches < kSomeLoops) {
    scale_host(view.facts, left, {}, out.change);
  } else {
    // The device's small kernels become fewer as well.
    out.change.edits.emplace_back(
        edit::Remove{Affected::of(loops.again), {1 - left.low, 1 - left.mid, 1 - left.high}});
  }
  view.add(std::move(out),
           {(1 - left.low) * (gap - recorder.high), (1 - left.mid) * (gap - recorder.mid),
            gap - recorder.low},
           gap, "C");
}

}  // namespace purlin::analyze
