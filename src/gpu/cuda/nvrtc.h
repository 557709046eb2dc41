// SPDX-License-Identifier: Apache-2.0
// NVRTC: CUDA C++ to a cubin, at run time and without a GPU.
//
// Thread-safety: compile() is [MT]. Failure: kUnavailable when NVRTC is not installed, kInvalid
// with the compiler's log when it refuses the source.
#pragma once

#include "base/status.h"
#include "gpu/device.h"

#include <memory>
#include <string>

namespace purlin::gpu {

class Nvrtc {
 public:
  // `newest` is the driver's CUDA major version: a cubin of a newer toolkit may not load on it. An
  // NVRTC beyond it is taken only where there is no other; 0 takes any.
  static Result<std::unique_ptr<Nvrtc>> load(int newest = 0);
  ~Nvrtc();

  // `arch` ("sm_90") holds unless the options name one, as "-arch=sm_90a" does. The entry is an
  // extern "C" name, a qualified name or a template instance such as "gemm<float, 64>".
  Result<Binary> compile(const CompileRequest& request, const std::string& arch) const;  // [MT]

  std::string version() const;         // "NVRTC 13.0"
  const std::string& library() const;  // what was opened

 private:
  struct Functions;
  explicit Nvrtc(std::unique_ptr<Functions> functions);
  std::unique_ptr<Functions> functions_;
};

}  // namespace purlin::gpu
