// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cublaslt/cublaslt.h"
#include "gpu/library_kernel.h"

#include <cstring>

namespace purlin::gpu {
namespace {

class LtKernel : public LibraryKernel {
 public:
  LtKernel(const LtFunctions& lt, cublasLtHandle_t handle, LibraryOperation operation)
      : lt_(lt), handle_(handle), operation_(std::move(operation)) {}

  // A, B, bias where there is one, D, workspace, M, N, K, BATCH: as library_spec_text lists them.
  Status prepare(const std::vector<LibraryArgument>& arguments) override {
    const std::size_t buffers = operation_.has_bias() ? 5 : 4;
    if (arguments.size() != buffers + 4)
      return error(Code::kInvalid, "{} takes {} arguments, the launch gives {}", operation_.text(),
                   buffers + 4, arguments.size());
    ProblemShape problem;
    constexpr const char* kExtents[] = {"M", "N", "K", "BATCH"};
    for (std::size_t i = 0; i < std::size(kExtents); ++i) {
      std::int64_t extent = 0;
      const std::string& bytes = arguments[buffers + i].scalar;
      if (bytes.size() != sizeof extent)
        return error(Code::kInvalid, "the extent {} has {} bytes", kExtents[i], bytes.size());
      std::memcpy(&extent, bytes.data(), sizeof extent);
      problem.set(kExtents[i], extent);
    }
    if (product_ == nullptr || problem_ != problem) {
      product_.reset();
      PURLIN_ASSIGN(auto product, LtProduct::create(lt_, handle_, operation_, problem));
      PURLIN_ASSIGN(algorithm_, product->build(config));
      product_ = std::move(product);
      problem_ = problem;
    }
    std::size_t at = 0;
    pointers_.a = arguments[at++].address;
    pointers_.b = arguments[at++].address;
    if (operation_.has_bias()) {
      pointers_.bias = arguments[at++].address;
      PURLIN_TRY(product_->point_bias(pointers_.bias));
    }
    pointers_.d = arguments[at++].address;
    pointers_.workspace = arguments[at].address;
    if (algorithm_.workspace_bytes > arguments[at].bytes)
      return error(Code::kInvalid, "the algorithm needs {} bytes of workspace, the launch gives {}",
                   algorithm_.workspace_bytes, arguments[at].bytes);
    return Status::ok();
  }

  Status enqueue(void* stream) override {
    return product_->launch(algorithm_, pointers_, static_cast<cudaStream_t>(stream));
  }

 private:
  const LtFunctions& lt_;
  const cublasLtHandle_t handle_;
  const LibraryOperation operation_;
  std::unique_ptr<LtProduct> product_;
  ProblemShape problem_;
  LtAlgorithm algorithm_;
  LtProduct::Pointers pointers_;
};

class LtRuntime : public LibraryRuntime {
 public:
  explicit LtRuntime(LtFunctions lt) : lt_(lt) {}
  ~LtRuntime() override {
    if (handle_ != nullptr) lt_.cublasLtDestroy(handle_);
  }
  std::string version() const override { return lt_.version(); }

  Result<LibrarySpace> space(const LibraryOperation& operation,
                             const ProblemShape& problem) override {
    PURLIN_TRY(start());
    PURLIN_ASSIGN(const auto product, LtProduct::create(lt_, handle_, operation, problem));
    return enumerate_lt(*product);
  }

  Result<std::unique_ptr<LibraryKernel>> load(const LibraryOperation& operation,
                                              const Config& config) override {
    PURLIN_TRY(start());
    auto kernel = std::make_unique<LtKernel>(lt_, handle_, operation);
    kernel->config = config;
    return std::unique_ptr<LibraryKernel>(std::move(kernel));
  }

 private:
  // A handle takes a driver and a moment; the version takes neither.
  Status start() {
    if (handle_ != nullptr) return Status::ok();
    return lt_failure("cublasLtCreate", lt_.cublasLtCreate(&handle_));
  }

  const LtFunctions lt_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<LibraryRuntime>> start_library(std::string_view library) {
  if (library != "cublaslt") return error(Code::kInvalid, "the library '{}' is unknown", library);
  PURLIN_ASSIGN(const LtFunctions lt, load_cublaslt());
  return std::unique_ptr<LibraryRuntime>(std::make_unique<LtRuntime>(lt));
}

}  // namespace purlin::gpu
