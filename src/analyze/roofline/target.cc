// SPDX-License-Identifier: Apache-2.0
#include "analyze/roofline/target.h"

#include <algorithm>

namespace purlin::analyze {

bool is_compute_ceiling(const Roof& roof) {
  if (roof.ceiling == "sm throughput") return true;
  if (roof.ceiling == "memory throughput") return false;
  return roof.compute_share > roof.memory_share ||
         (roof.compute_share == 0 && roof.memory_share == 0 && roof.bound == Bound::kCompute);
}

Target target_of(const Roof& roof, const TargetFractions& fractions) {
  Target target;
  if (roof.utilization <= 0) return target;
  target.fraction = is_compute_ceiling(roof) ? fractions.compute : fractions.memory;
  target.flops_per_s = roof.attainable_flops_per_s * target.fraction;
  target.speedup = std::max(1.0, target.fraction / roof.utilization);
  target.saved_share = 1 - 1 / target.speedup;
  return target;
}

}  // namespace purlin::analyze
