// SPDX-License-Identifier: Apache-2.0
#include "measure/compiled_limits.h"

#include "model/device/occupancy.h"

namespace purlin::measure {

Status check_launchable(const gpu::Resources& resources, const LaunchShape& launch,
                        const DeviceInfo& device) {
  const std::optional<SmLimits> limits = sm_limits(device.arch);
  if (!limits || resources.registers <= 0) return Status::ok();
  const std::string beyond =
      beyond_limits(launch, resources.registers, resources.static_shared_bytes, *limits);
  if (beyond.empty()) return Status::ok();
  return error(Code::kInvalid, "{} cannot launch it: {}", device.arch, beyond);
}

Status check_spills(const gpu::Resources& resources, std::optional<std::int64_t> usual) {
  if (!usual || resources.local_bytes <= *usual + kHeavySpillBytes) return Status::ok();
  return error(
      Code::kInvalid,
      "it spills: a thread has {} bytes of local memory, over {} of the default config and "
      "{} more. A limit such as 'spills <= 8192' in the spec replaces this rule",
      resources.local_bytes, *usual, kHeavySpillBytes);
}

}  // namespace purlin::measure
