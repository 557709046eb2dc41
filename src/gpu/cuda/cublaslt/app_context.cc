// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cublaslt/cublaslt.h"
#include "gpu/library_app_context.h"

#include <cstring>
#include <mutex>

namespace purlin::gpu {
namespace {

class LtPlan : public LibraryPlan {
 public:
  LtPlan(std::unique_ptr<LtProduct> product, LtAlgorithm algorithm)
      : product_(std::move(product)), algorithm_(algorithm) {}
  std::size_t workspace_bytes() const override { return algorithm_.workspace_bytes; }
  const void* algorithm() const override { return &algorithm_.algo; }

  Status launch(const LibraryPointers& given, void* stream) override {
    if (given.workspace_bytes < algorithm_.workspace_bytes)
      return error(Code::kInvalid, "the algorithm needs {} bytes of workspace, not {}",
                   algorithm_.workspace_bytes, given.workspace_bytes);
    const LtProduct::Pointers pointers{given.a, given.b, given.bias, given.d, given.workspace};
    if (!product_->operation().has_bias())
      return product_->launch(algorithm_, pointers, static_cast<cudaStream_t>(stream));
    // The bias is part of the descriptor, which is shared.
    const std::lock_guard lock(mutex_);
    PURLIN_TRY(product_->point_bias(given.bias));
    return product_->launch(algorithm_, pointers, static_cast<cudaStream_t>(stream));
  }

 private:
  const std::unique_ptr<LtProduct> product_;
  const LtAlgorithm algorithm_;
  std::mutex mutex_;
};

class LtAppContext : public LibraryAppContext {
 public:
  LtAppContext(LtFunctions lt, cublasLtHandle_t handle, bool owned)
      : lt_(lt), handle_(handle), owned_(owned) {}
  ~LtAppContext() override {
    if (owned_) lt_.cublasLtDestroy(handle_);
  }
  std::string version() const override { return lt_.version(); }
  std::size_t algorithm_bytes() const override { return sizeof(cublasLtMatmulAlgo_t); }

  Result<std::unique_ptr<LibraryPlan>> plan(const LibraryOperation& operation,
                                            const ProblemShape& problem,
                                            const Config* config) override {
    PURLIN_ASSIGN(auto product, LtProduct::create(lt_, handle_, operation, problem));
    LtAlgorithm algorithm;
    if (config != nullptr) {
      PURLIN_ASSIGN(algorithm, product->build(*config));
    } else {
      const auto proposals = product->proposals(1);
      if (proposals.empty())
        return error(Code::kInvalid, "{} proposes nothing for {} {}", version(), operation.text(),
                     problem.text());
      algorithm = {proposals.front().algo, proposals.front().workspaceSize};
    }
    return std::unique_ptr<LibraryPlan>(std::make_unique<LtPlan>(std::move(product), algorithm));
  }

  Result<std::size_t> algorithm(const LibraryOperation& operation, const LibraryDescriptors& given,
                                const Config& config, void* out) const override {
    const LtDescriptors descriptors{
        static_cast<cublasLtMatmulDesc_t>(given.operation),
        static_cast<cublasLtMatrixLayout_t>(given.a), static_cast<cublasLtMatrixLayout_t>(given.b),
        static_cast<cublasLtMatrixLayout_t>(given.c), static_cast<cublasLtMatrixLayout_t>(given.d)};
    PURLIN_ASSIGN(const LtAlgorithm made,
                  check_lt_algorithm(lt_, handle_, lt_types(operation), descriptors, config,
                                     static_cast<std::size_t>(operation.workspace_bytes)));
    std::memcpy(out, &made.algo, sizeof made.algo);
    return made.workspace_bytes;
  }

 private:
  const LtFunctions lt_;
  const cublasLtHandle_t handle_;
  const bool owned_;
};

}  // namespace

Result<std::unique_ptr<LibraryAppContext>> join_library(std::string_view library, void* handle) {
  if (library != "cublaslt") return error(Code::kInvalid, "the library '{}' is unknown", library);
  PURLIN_ASSIGN(const LtFunctions lt, loaded_cublaslt());
  auto* used = static_cast<cublasLtHandle_t>(handle);
  if (handle == nullptr) PURLIN_TRY(lt_failure("cublasLtCreate", lt.cublasLtCreate(&used)));
  return std::unique_ptr<LibraryAppContext>(
      std::make_unique<LtAppContext>(lt, used, handle == nullptr));
}

}  // namespace purlin::gpu
