// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cublaslt.h"
#include "gpu/library_guest.h"

#include <cstring>

namespace purlin::gpu {
namespace {

class LtGuest : public LibraryGuest {
 public:
  LtGuest(LtFunctions lt, cublasLtHandle_t handle) : lt_(lt), handle_(handle) {}
  std::string version() const override { return lt_.version(); }
  std::size_t algorithm_bytes() const override { return sizeof(cublasLtMatmulAlgo_t); }

  Result<std::size_t> algorithm(const LibraryOperation& operation, const ProblemShape& problem,
                                const LibraryDescriptors& given, const Config& config,
                                void* out) const override {
    LtAlgorithm made;
    if (given.operation == nullptr) {
      PURLIN_ASSIGN(const auto product, LtProduct::create(lt_, handle_, operation, problem));
      PURLIN_ASSIGN(made, product->build(config));
    } else {
      const LtDescriptors descriptors{static_cast<cublasLtMatmulDesc_t>(given.operation),
                                      static_cast<cublasLtMatrixLayout_t>(given.a),
                                      static_cast<cublasLtMatrixLayout_t>(given.b),
                                      static_cast<cublasLtMatrixLayout_t>(given.c),
                                      static_cast<cublasLtMatrixLayout_t>(given.d)};
      PURLIN_ASSIGN(made, check_lt_algorithm(lt_, handle_, lt_types(operation), descriptors, config,
                                             static_cast<std::size_t>(operation.workspace_bytes)));
    }
    std::memcpy(out, &made.algo, sizeof made.algo);
    return made.workspace_bytes;
  }

 private:
  const LtFunctions lt_;
  const cublasLtHandle_t handle_;
};

}  // namespace

Result<std::unique_ptr<LibraryGuest>> join_library(std::string_view library, void* handle) {
  if (library != "cublaslt")
    return error(Code::kInvalid, "'{}' is no library that is known here", library);
  if (handle == nullptr) return error(Code::kInvalid, "the handle of cuBLASLt is NULL");
  PURLIN_ASSIGN(const LtFunctions lt, loaded_cublaslt());
  return std::unique_ptr<LibraryGuest>(
      std::make_unique<LtGuest>(lt, static_cast<cublasLtHandle_t>(handle)));
}

}  // namespace purlin::gpu
