// SPDX-License-Identifier: Apache-2.0
// cuBLAS and cuBLASLt without a GPU, for tests of the CUDA capture library: entry points with the
// signatures of the real ones that launch a kernel of the fake CUPTI. Built twice: as libcublas,
// whose cublasGemmEx asks cuBLASLt, and as libcublasLt, whose descriptors tests fill in themselves.
#include <cstdint>
#include <cstring>
#include <cublasLt.h>
#include <cublas_api.h>

extern "C" void fake_launch(const char* name, int launches, std::uint64_t duration_ns);

namespace {
constexpr std::uint64_t kDuration = 5000;
}

extern "C" {

#ifdef PURLIN_FAKE_CUBLASLT

// What a test puts in place of the opaque descriptors.
struct FakeMatmul {
  std::int32_t transposed_a, transposed_b, compute;
  std::uint32_t epilogue;
};
struct FakeLayout {
  std::int64_t rows, columns, leading;
  std::int32_t type, order, batch;
};

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t matmul,
                                              cublasLtMatmulDescAttributes_t which, void* value,
                                              std::size_t size, std::size_t* written) {
  const auto* fake = reinterpret_cast<const FakeMatmul*>(matmul);
  const void* from = which == CUBLASLT_MATMUL_DESC_TRANSA         ? &fake->transposed_a
                     : which == CUBLASLT_MATMUL_DESC_TRANSB       ? &fake->transposed_b
                     : which == CUBLASLT_MATMUL_DESC_COMPUTE_TYPE ? &fake->compute
                     : which == CUBLASLT_MATMUL_DESC_EPILOGUE
                         ? static_cast<const void*>(&fake->epilogue)
                         : nullptr;
  if (from == nullptr || size != 4) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, from, size);
  *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t matrix,
                                                cublasLtMatrixLayoutAttribute_t which, void* value,
                                                std::size_t size, std::size_t* written) {
  const auto* fake = reinterpret_cast<const FakeLayout*>(matrix);
  const auto give = [&](const auto& field) {
    if (size != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(value, &field, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return give(fake->rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return give(fake->columns);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return give(fake->leading);
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return give(fake->type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return give(fake->order);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return give(fake->batch);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*,
                              cublasLtMatrixLayout_t, const void*, cublasLtMatrixLayout_t,
                              const void*, const void*, cublasLtMatrixLayout_t, void*,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*,
                              std::size_t, cudaStream_t) {
  fake_launch("matmul_of_cublaslt", 1, kDuration);
  return CUBLAS_STATUS_SUCCESS;
}

#else

cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                              const float*, const float*, int, const float*, int, const float*,
                              float*, int) {
  fake_launch("sgemm_of_cublas", 1, kDuration);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                            const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                            int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                            cublasGemmAlgo_t) {
  return cublasLtMatmul(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                        nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr);
}

cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                         int, int, const double*, const double*, int, long long,
                                         const double*, int, long long, const double*, double*, int,
                                         long long, int) {
  fake_launch("dgemm_of_cublas", 2, kDuration);  // split along K: a kernel and its reduction
  return CUBLAS_STATUS_SUCCESS;
}

#endif
}
