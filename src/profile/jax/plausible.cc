// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/plausible.h"

#include "model/device/gpu_table.h"
#include "profile/jax/kernel_names.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace purlin::profile {
namespace {

double peak_of(const GpuModel* gpu, std::string_view dtype) {
  double exact = 0, most = 0;
  for (const GpuRate& rate : gpu->rates) {
    const double peak = gpu->peak(rate, std::max(gpu->boost_mhz, gpu->tensor_mhz));
    most = std::max(most, peak);
    const bool same = rate.dtype == dtype || (rate.dtype == "tf32" && dtype == "f32");
    if (same) exact = std::max(exact, peak);
  }
  return exact > 0 ? exact : most;
}

}  // namespace

bool is_plausible(const Environment& environment, const KernelRow& row, const hlo::Launch& launch,
                  double ns) {
  constexpr double kClocks = 1.1;  // what a device may do above its sheet
  if (launch.flops > 0 && launch.library()) {
    const std::string_view dtype = dtype_by_name(row.name);
    if (!dtype.empty() && dtype != launch.dtype) return false;
  }
  const auto at = static_cast<std::size_t>(row.device);
  if (row.device < 0 || at >= environment.devices.size()) return true;
  const GpuModel* gpu = find_gpu(environment.devices[at].name);
  if (gpu == nullptr) return true;
  if (launch.flops > 0 && launch.flops > peak_of(gpu, launch.dtype) * kClocks * ns * 1e-9)
    return false;
  // What is larger than the cache comes from memory.
  const double cache = gpu->l2_mib * (1 << 20);
  return launch.bytes - 2 * cache <= gpu->dram_gbs * kClocks * ns;
}

}  // namespace purlin::profile
