// SPDX-License-Identifier: Apache-2.0
// LibraryKernel: a kernel that a vendor's library launches, behind the same seam as compiled ones.
//
// Its binary is a token: the operation and the config, as text. Arguments come as for any kernel;
// extents are among them as scalars, so the product is described at the first launch. The devices
// that can run one make it with load_library_kernel(). Thread-safety and lifetime as for Kernel.
#pragma once

#include "gpu/device.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::gpu {

class LibraryRuntime;

struct LibraryArgument {
  void* address = nullptr;  // of a buffer's visible range, on the device
  std::size_t bytes = 0;
  std::string scalar;
};

class LibraryKernel : public Kernel {
 public:
  Config config;
  bool warm = false;  // whether it ran
  // Before each series of launches. kInvalid where the library does not take the config.
  virtual Status prepare(const std::vector<LibraryArgument>& arguments) = 0;
  virtual Status enqueue(void* stream) = 0;
};

// A started library: its functions and a handle. One for each device.
class LibraryRuntime {
 public:
  virtual ~LibraryRuntime() = default;
  virtual std::string version() const = 0;
  virtual Result<LibrarySpace> space(const LibraryOperation& operation,
                                     const ProblemShape& problem) = 0;
  virtual Result<std::unique_ptr<LibraryKernel>> load(const LibraryOperation& operation,
                                                      const Config& config) = 0;
};

// Opens "cublaslt" on the current context. kUnavailable in builds without CUDA.
Result<std::unique_ptr<LibraryRuntime>> start_library(std::string_view library);

// The facts of a device for the keys of a spec. For a library's operation the toolkit is the
// library's version. kUnavailable if the library is not installed.
Result<DeviceInfo> device_for(const std::optional<LibraryOperation>& library, DeviceInfo device);

Result<Binary> library_binary(const CompileRequest& request);
bool is_library_binary(const Binary& binary);
struct LibraryToken {
  LibraryOperation operation;
  Config config;
};
Result<LibraryToken> read_library_binary(const Binary& binary);

}  // namespace purlin::gpu
