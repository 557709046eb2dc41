// SPDX-License-Identifier: Apache-2.0
// A processor as device: copies between it and the host, which share their memory.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"

namespace purlin::analyze {
namespace {

constexpr Interval3 kMapped = {0.5, 0.9, 1.0};  // of copies between a host and itself

}  // namespace

// A processor as device has the host's memory: a copy between them moves nothing further away.
void add_mapped_rule(HostView& view) {
  const double exposed = view.over_devices(&DeviceTime::exposed_copy_ns) * view.host_part();
  if (exposed < kExposedCopies * view.length) return;
  Intervention out = from_remedy("map_buffers");
  out.evidence.push_back(
      {"copies between host and device that nothing hides", view.part(exposed), "timeline"});
  out.evidence.push_back({"device", "a processor: its memory is the host's", "timeline"});
  out.assumptions.emplace_back("a mapped buffer is not copied; at worst one copy of two remains");
  out.change.edits.emplace_back(edit::Scale{Affected::of_copies(view.copy_rows(is_host_copy)),
                                            {1 - kMapped.low, 1 - kMapped.mid, 1 - kMapped.high}});
  view.add(std::move(out), kMapped * exposed, exposed, "C");
}

}  // namespace purlin::analyze
