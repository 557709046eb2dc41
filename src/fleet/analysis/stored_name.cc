// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/stored_name.h"

namespace purlin::fleet::analysis {

std::string stored_name(const analyze::KernelName& name, std::string_view recorded) {
  return std::string((name.brief.empty() ? recorded : name.brief).substr(0, kMaxKernelBytes));
}

}  // namespace purlin::fleet::analysis
