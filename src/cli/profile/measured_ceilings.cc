// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/measured_ceilings.h"

#include "measure/ceilings/ceilings.h"

#include <set>

namespace purlin::cli {

std::vector<Ceilings> measured_ceilings(const Environment& environment) {
  std::vector<Ceilings> out;
  std::set<std::string> models;
  for (const DeviceInfo& device : environment.devices) {
    if (!models.insert(device.name).second) continue;
    Ceilings ceilings = measure::load_ceilings(device, measure::ceilings_directory());
    if (!ceilings.empty()) out.push_back(std::move(ceilings));
  }
  return out;
}

}  // namespace purlin::cli
