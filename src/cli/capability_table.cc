// SPDX-License-Identifier: Apache-2.0
#include "cli/capability_table.h"

#include <algorithm>

namespace purlin::cli {

std::string render_capabilities(const std::vector<Capability>& capabilities,
                                const Terminal& terminal) {
  Table table;
  for (int column = 0; column < 3; ++column) table.column("");
  for (const Capability& capability : capabilities) {
    const Style style = capability.state == CapabilityState::kOk         ? Style::kGreen
                        : capability.state == CapabilityState::kDegraded ? Style::kYellow
                                                                         : Style::kRed;
    const Capability& first =
        *std::find_if(capabilities.begin(), capabilities.end(),
                      [&](const Capability& other) { return other.fix == capability.fix; });
    // A fix is written once, where it is needed first.
    const bool repeated = !capability.fix.empty() && &first != &capability;
    table.row({terminal.paint(style, state_name(capability.state)), capability.title,
               capability.evidence + (repeated ? "; see " + first.title : "")});
    if (capability.fix.empty() || repeated) continue;
    table.row({"", "", fmt::format("{} {}", terminal.paint(Style::kBold, "fix:"), capability.fix)});
  }
  return table.render(terminal);
}

}  // namespace purlin::cli
