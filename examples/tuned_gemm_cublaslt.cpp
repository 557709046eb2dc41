// SPDX-License-Identifier: Apache-2.0
// y = x * w^T in bf16 through the program's own cublasLtMatmul, with the algorithm that `purlin
// tune` found for this GPU and shape, or the heuristic's.
//
//   purlin tune kernels/gemm_cublaslt/gemm_cublaslt.toml --device cuda:0 --shape
//   M=16,N=4096,K=14336 tuned_gemm_cublaslt 16 4096 14336
//
// Only tuned_algorithm() uses Purlin. The rest is the usual code for cuBLASLt.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>
#include <purlin/purlin.hpp>

namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;
constexpr int kLaunches = 50;

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "tuned_gemm_cublaslt: %s failed (%d)\n", what, status);
  std::exit(2);
}

struct Product {
  cublasLtHandle_t lt = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
};

// Replaces the heuristic's algorithm where a tuned one is known, and valid for these descriptors.
bool tuned_algorithm(const Product& product, std::int64_t m, std::int64_t n, std::int64_t k,
                     cublasLtMatmulAlgo_t& algo, std::size_t& workspace) {
  try {
    purlin::Cache cache;
    const purlin_device device = cache.device("cuda:0");
    purlin_cublaslt_desc desc = PURLIN_CUBLASLT_DESC_INIT;
    desc.a = "bf16";
    desc.transpose_b = 1;
    desc.workspace_bytes = kWorkspace;
    desc.device = &device;
    desc.handle = product.lt;
    purlin_cublaslt* opened = nullptr;
    if (const purlin_status status = purlin_cublaslt_open(cache.handle(), &desc, &opened);
        status != PURLIN_OK)
      throw purlin::Error(status);
    const std::int64_t extents[] = {m, n, k};
    // The library is column-major: its A is our w, its B our x.
    void* const descriptors[] = {product.operation, product.w, product.x, product.y, product.y};
    const purlin_outcome outcome =
        purlin_cublaslt_algo(opened, extents, 3, descriptors, &algo, sizeof algo, &workspace);
    std::printf("lookup: %s\n", purlin_outcome_name(outcome));
    purlin_cublaslt_close(opened);
    return outcome != PURLIN_MISS;
  } catch (const purlin::Error& error) {
    std::fprintf(stderr, "tuned_gemm_cublaslt: %s\n", error.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t m = argc > 1 ? std::atoll(argv[1]) : 16,
                     n = argc > 2 ? std::atoll(argv[2]) : 4096,
                     k = argc > 3 ? std::atoll(argv[3]) : 14336;
  Product product;
  check(cublasLtCreate(&product.lt), "cublasLtCreate");
  check(cublasLtMatmulDescCreate(&product.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "a descriptor");
  const cublasOperation_t transposed = CUBLAS_OP_T;
  check(cublasLtMatmulDescSetAttribute(product.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                       sizeof transposed),
        "a descriptor");
  const auto rows = [](std::int64_t extent) { return static_cast<std::uint64_t>(extent); };
  check(cublasLtMatrixLayoutCreate(&product.w, CUDA_R_16BF, rows(k), rows(n), k), "a layout");
  check(cublasLtMatrixLayoutCreate(&product.x, CUDA_R_16BF, rows(k), rows(m), k), "a layout");
  check(cublasLtMatrixLayoutCreate(&product.y, CUDA_R_16BF, rows(n), rows(m), n), "a layout");

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "a preference");
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &kWorkspace, sizeof kWorkspace),
        "a preference");
  cublasLtMatmulHeuristicResult_t proposal{};
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(product.lt, product.operation, product.w, product.x,
                                       product.y, product.y, preference, 1, &proposal, &count),
        "the heuristic");
  cublasLtMatmulAlgo_t tuned = proposal.algo;
  std::size_t workspace_bytes = proposal.workspaceSize;
  const bool found = tuned_algorithm(product, m, n, k, tuned, workspace_bytes);

  void *w = nullptr, *x = nullptr, *y = nullptr, *workspace = nullptr;
  check(cudaMalloc(&w, rows(n * k) * 2), "cudaMalloc");
  check(cudaMalloc(&x, rows(m * k) * 2), "cudaMalloc");
  check(cudaMalloc(&y, rows(m * n) * 2), "cudaMalloc");
  check(cudaMalloc(&workspace, kWorkspace), "cudaMalloc");
  check(cudaMemset(w, 0x3C, rows(n * k) * 2), "cudaMemset");
  check(cudaMemset(x, 0x3C, rows(m * k) * 2), "cudaMemset");
  const auto time_us = [&](const cublasLtMatmulAlgo_t& algo) {
    const float one = 1, zero = 0;
    cudaEvent_t first = nullptr, last = nullptr;
    check(cudaEventCreate(&first), "cudaEventCreate");
    check(cudaEventCreate(&last), "cudaEventCreate");
    for (int i = -5; i < kLaunches; ++i) {
      if (i == 0) check(cudaEventRecord(first, nullptr), "cudaEventRecord");
      check(cublasLtMatmul(product.lt, product.operation, &one, w, product.w, x, product.x, &zero,
                           y, product.y, y, product.y, &algo, workspace, kWorkspace, nullptr),
            "cublasLtMatmul");
    }
    check(cudaEventRecord(last, nullptr), "cudaEventRecord");
    check(cudaEventSynchronize(last), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, first, last), "cudaEventElapsedTime");
    return ms * 1e3F / kLaunches;
  };
  const float heuristic_us = time_us(proposal.algo);
  std::printf("heuristic %.2f us", static_cast<double>(heuristic_us));
  if (found) std::printf(", tuned %.2f us", static_cast<double>(time_us(tuned)));
  std::printf("\n");
  return 0;
}
