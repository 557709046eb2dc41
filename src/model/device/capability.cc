// SPDX-License-Identifier: Apache-2.0
#include "model/device/capability.h"

namespace purlin {

std::string_view state_name(CapabilityState state) {
  return state == CapabilityState::kOk         ? "ok"
         : state == CapabilityState::kDegraded ? "degraded"
                                               : "missing";
}

Json to_json(const std::vector<Capability>& capabilities) {
  Json list = Json::array();
  for (const Capability& capability : capabilities)
    list.push(Json::object({{"id", capability.id},
                            {"title", capability.title},
                            {"state", state_name(capability.state)},
                            {"evidence", capability.evidence},
                            {"fix", capability.fix.empty() ? Json() : Json(capability.fix)}}));
  return list;
}

}  // namespace purlin
