// SPDX-License-Identifier: Apache-2.0
// Fills of memory that no computation hides: memsets, and kernels of PyTorch.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/rules/walk.h"
#include "analyze/timeline/intervals.h"

#include <utility>

namespace purlin::analyze {

namespace {

// Where the host sets the pace, a fill less is an op less: of those that set an array to zero.
double host_part_of_fills(const HostView& view) {
  const Timeline& timeline = view.facts.profile->timeline;
  double ns = 0;
  for (const Op& op : timeline.ops)
    if (name_in(timeline, op.name) == "aten::zero_" && op.parent >= timeline.ops.size())
      ns += static_cast<double>(interval_of(op).length());
  return ns * view.share;
}

}  // namespace

void add_fills_rule(HostView& view) {
  const auto is_fill = [](const std::string& kind) { return kind == "memset" || kind == "fill"; };
  double exposed = view.over_devices(&DeviceTime::exposed_copy_ns) * view.part_of_copies(is_fill);
  Affected fills = Affected::of_copies(view.copy_rows(is_fill));
  const Facts& facts = view.facts;
  for (std::uint32_t row = 0; row < facts.profile->kernels.size(); ++row) {
    const KernelRow& kernel = facts.profile->kernels[row];
    if (kernel.name.find("FillFunctor") == std::string::npos) continue;
    fills.kernel_rows.push_back(row);
    exposed += facts.in_unit(kernel.duration.total_ns() * facts.exposure.share[row]);
  }
  if (view.unit.host_ns > kLaunchBound * view.length) exposed += host_part_of_fills(view);
  if (exposed < kExposedCopies * view.length) return;
  Intervention out = from_remedy("remove_fills");
  out.evidence.push_back({"fills of memory that nothing hides", view.part(exposed), "timeline"});
  out.assumptions.emplace_back(
      "zeros may be what the program needs, so the low estimate is 0, and the middle half");
  out.change.edits.emplace_back(edit::Remove{std::move(fills), kHalf});
  view.add(std::move(out), kHalf * exposed, exposed, "C");
}

}  // namespace purlin::analyze
