// SPDX-License-Identifier: Apache-2.0
#include "profile/capability.h"

#include "profile/launcher.h"

namespace purlin::profile {

Capability examine_capture_libraries() {
  const CaptureLibraries found = find_capture_libraries();
  Capability result{"capture_libraries", "Capture libraries", CapabilityState::kOk, "", ""};
  result.evidence = fmt::format("CUDA: {}; OpenCL: {}", found.cuda.empty() ? "none" : found.cuda,
                                found.opencl.empty() ? "none" : found.opencl);
  if (found.cuda.empty() || found.opencl.empty()) {
    result.state = found.cuda.empty() && found.opencl.empty() ? CapabilityState::kMissing
                                                              : CapabilityState::kDegraded;
    result.fix =
        "reinstall Purlin; a build has the CUDA library only where it found CUDA's headers";
  }
  return result;
}

}  // namespace purlin::profile
