// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: its functions bound at run time, the description of one matrix product, and algorithms
// made from named attributes.
//
// An algorithm is a config of library_parameters(). It is built by cublasLtMatmulAlgoInit and its
// attributes, and is valid only if cublasLtMatmulAlgoCheck accepts it for the product. The
// library's 64 bytes of an algorithm are never stored. Thread-safety: functions are immutable; an
// LtProduct belongs to one thread at a time. Failure: kUnavailable when the library is missing or
// does not start, kInvalid if it refuses, kFailed when the device is lost.
#pragma once

#include "base/status.h"
#include "gpu/device.h"
#include "model/expression/value.h"
#include "model/spec/library_operation.h"

#include <cublasLt.h>
#include <memory>
#include <string>
#include <vector>

namespace purlin::gpu {

struct LtFunctions {
#define PURLIN_CUBLASLT_FUNCTIONS(X)      \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)     \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulAlgoGetIds)             \
  X(cublasLtMatmulAlgoInit)               \
  X(cublasLtMatmulAlgoCheck)              \
  X(cublasLtMatmulAlgoCapGetAttribute)    \
  X(cublasLtMatmulAlgoConfigSetAttribute) \
  X(cublasLtMatmulAlgoConfigGetAttribute)
#define PURLIN_DECLARE(function) decltype(&::function) function = nullptr;
  PURLIN_CUBLASLT_FUNCTIONS(PURLIN_DECLARE)
#undef PURLIN_DECLARE
  std::string version() const;  // "cuBLASLt 13.1.0"
};

// Opens the library as vendor_library_names finds it.
Result<LtFunctions> load_cublaslt();
// The library that this process has already loaded; kNotFound without one. A handle works only
// with the library that made it.
Result<LtFunctions> loaded_cublaslt();

// What the types of an operation are to the library.
struct LtTypes {
  cublasComputeType_t compute;
  cudaDataType_t scale, a, b, d;
};
LtTypes lt_types(const LibraryOperation& operation);

// The descriptors a check or a launch is about.
struct LtDescriptors {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr, d = nullptr;
};

// A built algorithm and what it needs.
struct LtAlgorithm {
  cublasLtMatmulAlgo_t algo{};
  std::size_t workspace_bytes = 0;
};

// The attributes of a config set on an initialised algorithm; kInvalid names what was refused.
Result<cublasLtMatmulAlgo_t> build_lt_algorithm(const LtFunctions& lt, cublasLtHandle_t handle,
                                                const LtTypes& types, const Config& config);
// The attributes an algorithm has, as a config.
Result<Config> read_lt_algorithm(const LtFunctions& lt, const cublasLtMatmulAlgo_t& algo);
// Built, and accepted for the descriptors within the workspace; else kInvalid.
Result<LtAlgorithm> check_lt_algorithm(const LtFunctions& lt, cublasLtHandle_t handle,
                                       const LtTypes& types, const LtDescriptors& descriptors,
                                       const Config& config, std::size_t workspace_bytes);

// An operation at one problem shape. The library is column-major, so that its first operand is our
// B and its result our D transposed.
class LtProduct {
 public:
  // The functions and the handle outlive it. Dimensions M, N, K and, where batched, BATCH.
  static Result<std::unique_ptr<LtProduct>> create(const LtFunctions& lt, cublasLtHandle_t handle,
                                                   const LibraryOperation& operation,
                                                   const ProblemShape& problem);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  Result<LtAlgorithm> build(const Config& config) const;
  // The library's own proposals, its first choice first; at most `at_most`.
  std::vector<cublasLtMatmulHeuristicResult_t> proposals(int at_most) const;
  struct Pointers {
    const void *a = nullptr, *b = nullptr, *bias = nullptr;
    void *d = nullptr, *workspace = nullptr;
  };
  Status point_bias(const void* bias);
  Status launch(const LtAlgorithm& algorithm, const Pointers& pointers, cudaStream_t stream) const;

  const LtFunctions& functions() const { return lt_; }
  cublasLtHandle_t handle() const { return handle_; }
  const LtTypes& types() const { return types_; }
  const LtDescriptors& descriptors() const { return descriptors_; }
  const LibraryOperation& operation() const { return operation_; }

 private:
  LtProduct(const LtFunctions& lt, cublasLtHandle_t handle, LibraryOperation operation)
      : lt_(lt), handle_(handle), operation_(std::move(operation)), types_(lt_types(operation_)) {}
  Status describe(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch);

  const LtFunctions& lt_;
  cublasLtHandle_t handle_;
  const LibraryOperation operation_;
  const LtTypes types_;
  LtDescriptors descriptors_;
};

// Every algorithm the library accepts for a product, by its attributes (space.cc).
struct LtSpaceLimits {
  double seconds = 3;  // after that the space ends, and is not complete
  std::size_t configs = 200'000;
};
Result<LibrarySpace> enumerate_lt(const LtProduct& product, const LtSpaceLimits& limits = {});

Status lt_failure(std::string_view what, cublasStatus_t status);

}  // namespace purlin::gpu
