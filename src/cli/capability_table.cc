// SPDX-License-Identifier: Apache-2.0
#include "cli/capability_table.h"

#include <algorithm>

namespace purlin::cli {

std::string render_capabilities(const std::vector<Capability>& capabilities,
                                const Terminal& terminal) {
  std::size_t width = 0;
  for (const Capability& capability : capabilities)
    width = std::max(width, capability.title.size());
  std::string text;
  for (const Capability& capability : capabilities) {
    const Style style = capability.state == CapabilityState::kOk         ? Style::kGreen
                        : capability.state == CapabilityState::kDegraded ? Style::kYellow
                                                                         : Style::kRed;
    const std::string state = fmt::format("{:<8}", state_name(capability.state));
    text += fmt::format("{}  {:<{}}  {}\n", terminal.paint(style, state), capability.title, width,
                        capability.evidence);
    if (capability.fix.empty()) continue;
    const Capability& first =
        *std::find_if(capabilities.begin(), capabilities.end(),
                      [&](const Capability& other) { return other.fix == capability.fix; });
    text += fmt::format("{:10}{:{}}  {} {}\n", "", "", width, terminal.paint(Style::kBold, "fix:"),
                        &first == &capability ? capability.fix : "see " + first.title);
  }
  return text;
}

}  // namespace purlin::cli
