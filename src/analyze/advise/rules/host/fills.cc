// SPDX-License-Identifier: Apache-2.0
// Fills of memory that no computation hides: memsets, and kernels of PyTorch.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"

#include <utility>

namespace purlin::analyze {

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
  if (exposed < kExposedCopies * view.length) return;
  Intervention out = from_remedy("remove_fills");
  out.evidence.push_back({"fills of memory that nothing hides", view.part(exposed), "timeline"});
  out.assumptions.emplace_back(
      "zeros may be what the program needs, so the low estimate is 0, and the middle half");
  out.change.edits.emplace_back(edit::Remove{std::move(fills), kHalf});
  view.add(std::move(out), kHalf * exposed, exposed, "C");
}

}  // namespace purlin::analyze
