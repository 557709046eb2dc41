// SPDX-License-Identifier: Apache-2.0
// Replaces the CUDA backend in builds without CUDA's headers.
#include "gpu/app_context.h"
#include "gpu/device.h"
#include "gpu/source_lines.h"

namespace purlin::gpu {
namespace {

Status absent_reason() {
  return error(Code::kUnavailable,
               "this purlin was built without CUDA; build it where cuda.h, nvrtc.h and cupti.h "
               "are found (CUDA toolkit, or set CUDA_HOME), or use an official bundle");
}

class AbsentBackend : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  Result<std::vector<DeviceInfo>> devices() override { return absent_reason(); }
  Result<std::unique_ptr<Device>> open(int) override { return absent_reason(); }
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<AbsentBackend>(); }
Result<std::unique_ptr<AppContext>> open_cuda_app_context() { return absent_reason(); }
Result<SourceLines> SourceLines::open() { return absent_reason(); }
SourceLine SourceLines::find(std::string_view, const std::string&, std::uint64_t) const {
  return {};
}

}  // namespace purlin::gpu
