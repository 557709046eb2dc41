// SPDX-License-Identifier: Apache-2.0
// Nvcc: CUDA C++ to a cubin through the toolkit's compiler driver, for sources that NVRTC cannot
// take: those that include host headers, as CUTLASS's do. Seconds per kernel, not milliseconds.
//
// nvcc runs as a child process, without a shell, under a time limit, in a temporary folder.
// Thread-safety: [MT]. Failure: kUnavailable without nvcc, kInvalid with the compiler's log from
// its first error on, kTimeout.
#pragma once

#include "base/status.h"
#include "gpu/device.h"

#include <mutex>
#include <optional>
#include <string>

namespace purlin::gpu {

class Nvcc {
 public:
  // "" looks at $PURLIN_NVCC, then under $CUDA_HOME and $CUDA_PATH, in PATH, /usr/local/cuda.
  explicit Nvcc(std::string path = "") : path_(std::move(path)) {}

  // The entry is an extern "C" name, a qualified name or a template instance whose arguments may be
  // the config's macros, such as "gemm<float, BM>".
  Result<Binary> compile(const CompileRequest& request, const std::string& arch);
  // "nvcc 13.0.88", and what the environment adds to each command. Asked of the compiler once.
  Result<std::string> version();

 private:
  struct Found {
    std::string path, version;
  };
  Result<Found> find();

  std::string path_;
  std::mutex mutex_;
  std::optional<Result<Found>> found_;  // guarded by mutex_
};

// The one of `archs` that is of this device: "sm_90a" for "sm_90". Empty `archs`: the device's own.
// kInvalid where none is.
Result<std::string> choose_arch(const std::vector<std::string>& archs, const std::string& device);

// Whether compiler options name an architecture themselves.
bool names_an_arch(const std::vector<std::string>& options);

// The kernel of a cubin that is named by the marker of compile(); nullopt without a marker.
std::optional<std::string> marked_entry(std::string_view cubin, const std::string& entry);

}  // namespace purlin::gpu
