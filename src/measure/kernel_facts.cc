// SPDX-License-Identifier: Apache-2.0
#include "measure/kernel_facts.h"

#include "model/device/occupancy.h"

namespace purlin::measure {

std::map<std::string, double> kernel_facts(const gpu::Kernel& kernel, const gpu::Binary& binary,
                                           const LaunchShape& launch, const DeviceInfo& device) {
  std::map<std::string, double> facts;
  facts["code_bytes"] = static_cast<double>(binary.image.size());
  facts["blocks"] = static_cast<double>(launch.blocks());
  facts["threads"] = static_cast<double>(launch.threads_per_block());
  if (kernel.registers <= 0) return facts;
  facts["registers"] = kernel.registers;
  facts["local_bytes"] = static_cast<double>(kernel.local_bytes);
  facts["shared_bytes"] =
      static_cast<double>(kernel.static_shared_bytes) + launch.dynamic_shared_bytes;
  const auto limits = sm_limits(device.arch);
  if (!limits) return facts;
  const auto occupancy = occupancy_of(launch, kernel.registers, kernel.static_shared_bytes, *limits,
                                      device.compute_units);
  if (!occupancy) return facts;
  facts["occupancy"] = occupancy->theoretical;
  facts["estimated_occupancy"] = occupancy->estimated;
  facts["waves"] = occupancy->waves;
  return facts;
}

}  // namespace purlin::measure
