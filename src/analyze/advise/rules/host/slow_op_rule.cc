// SPDX-License-Identifier: Apache-2.0
// One operator whose own work on the host makes the launches late.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/host/slow_op.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

// Of a slow operator's own time; it is slow in this share of the steps, and most of the late time.
constexpr Interval3 kSlowOp = {0.3, 0.8, 1};
constexpr double kOftenSlow = 0.5, kMainOp = 0.3;

std::vector<std::string> how_of(const std::string& op) {
  if (op.find("cudnn_attention") != std::string::npos)
    return {
        "PyTorch: torch.backends.cuda.enable_cudnn_sdp(False) selects FlashAttention, which "
        "needs no plan",
        "or keep the shapes constant: a static cache of keys and values, padded lengths"};
  if (op.find("conv") != std::string::npos)
    return {
        "cuDNN searches an algorithm for each new shape: keep the shapes constant, or "
        "torch.backends.cudnn.benchmark = False"};
  return from_remedy("slow_op").how;
}

}  // namespace

// One operator, again and again, and not the number of launches.
void add_slow_op_rule(HostView& view) {
  const std::optional<SlowOp> slow =
      find_slow_op(view.facts.profile->timeline, std::max(3.0, kOftenSlow * view.unit.count));
  if (!slow) return;
  const double late = view.unit.host_ns - view.stalled_ns, own = slow->own_ns / view.unit.count;
  const double gap = std::min(late, own);
  if (gap < kLaunchBound * view.length || own < kMainOp * late) return;
  Intervention out = from_remedy("slow_op");
  out.how = how_of(slow->name);
  out.evidence.push_back(
      {"operator whose own work on the host takes at least 1 ms",
       fmt::format("{}, {} of {}", clean(slow->name), format_count(slow->instances),
                   counted(slow->instances + slow->others, "time")),
       "timeline"});
  out.evidence.push_back(
      {"its own time, without inner operators and API calls", view.part(own), "timeline"});
  view.add_longest(IdleCause::kHostLaunch, out);
  out.assumptions.emplace_back(
      "the work is not needed again for each step: a plan or an "
      "algorithm for a shape; the low estimate keeps 70% of it");
  view.stalled_ns += gap;
  out.change.edits.emplace_back(edit::ScaleHost{
      {1 - kSlowOp.low, 1 - kSlowOp.mid, 1 - kSlowOp.high}, slow->when, slow->process});
  view.add(std::move(out), kSlowOp * gap, gap, "C");
}

}  // namespace purlin::analyze
