// SPDX-License-Identifier: Apache-2.0
// The host launches late, for all kinds of reasons.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

namespace purlin::analyze {
namespace {

constexpr double kLeastHost = 0.03;  // of the host's time that any program keeps

}  // namespace

void add_host_work_rule(HostView& view) {
  const double gap = view.unit.host_ns - view.stalled_ns;
  if (gap < kLaunchBound * view.length) return;
  const Interval3 recorder = view.unit.recorder_ns * (gap / view.unit.host_ns);
  Intervention out = from_remedy("cut_host_work");
  out.evidence.push_back(
      {"device idle because the host launches late", view.part(gap), "timeline"});
  view.add_longest(IdleCause::kHostLaunch, out);
  if (!view.hindrance.empty())
    out.how.push_back("CUDA: a repeated sequence could be a CUDA graph without: " +
                      clean(view.hindrance));
  out.assumptions.push_back(fmt::format(
      "half of the host's work can be removed; the recorder slowed the host by {} to {}",
      short_ns(recorder.low), short_ns(recorder.high)));
  if (view.graphed_ns > 0.5 * gap) {
    out.alternative = true;
    out.assumptions.emplace_back(
        "the CUDA graph saves most of the same time: this is what to do instead of it");
  }
  scale_host(view.facts, {1, 0.5, kLeastHost}, {}, out.change);
  view.add(std::move(out), {0, 0.5 * (gap - recorder.mid), gap - recorder.low}, gap, "C");
}

}  // namespace purlin::analyze
