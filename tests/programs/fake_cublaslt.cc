// SPDX-License-Identifier: Apache-2.0
// A cuBLASLt for machines without a GPU: the same calls, a small algorithm space with the quirks of
// the real one, products computed on the host from host pointers. Version 13.1.0.
//
//   algo 1    two tiles, nothing else
//   algo 6    tiles and stages of which one pair is refused; split-K by three reductions, which
//   take
//             workspace; swizzling
//   algo 66   clusters, which no capability lists; custom option 3 goes with cluster 3 only
//
// FAKE_CUBLASLT_WRONG=TILE computes nonsense with that tile; FAKE_CUBLASLT_STRAY=TILE writes past
// the workspace it asked for; FAKE_CUBLASLT_HIDDEN=1 proposes algorithms that hold more than their
// attributes say; FAKE_CUBLASLT_REFUSE=TILE accepts it no more; FAKE_CUBLASLT_VERSION=N is another
// version; FAKE_CUBLASLT_LOG=FILE has a line for each product.
#include "model/problem/dtype.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cublasLt.h>
#include <vector>

namespace {

using purlin::Dtype;

struct Desc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  int transpose_a = 0, transpose_b = 0, epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct Layout {
  cudaDataType_t type;
  std::int64_t rows, columns, ld;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};
struct Algo {
  std::uint32_t magic = 0;
  std::int32_t id = 0;
  std::uint32_t tile = 0, stages = 0;
  std::int32_t split = 1;
  std::uint32_t reduction = 0, swizzle = 0, custom = 0;
  std::uint16_t inner = 0, cluster = 0;
  std::uint32_t hidden = 0;
};
static_assert(sizeof(Algo) <= sizeof(cublasLtMatmulAlgo_t));
constexpr std::uint32_t kMagic = 0xA1607;

// The library's handles are incomplete or opaque types; ours stand behind them.
template <class To, class From>
To* behind(From* handle) {
  return reinterpret_cast<To*>(handle);
}
Algo read(const cublasLtMatmulAlgo_t* algo) {
  Algo made;
  std::memcpy(static_cast<void*>(&made), algo, sizeof made);
  return made;
}
void write(cublasLtMatmulAlgo_t* algo, const Algo& from) {
  std::memset(algo, 0, sizeof *algo);
  std::memcpy(algo, &from, sizeof from);
}

long number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? -1 : std::strtol(text, nullptr, 10);
}

Dtype dtype_of(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
      return Dtype::kF16;
    case CUDA_R_16BF:
      return Dtype::kBf16;
    case CUDA_R_64F:
      return Dtype::kF64;
    case CUDA_R_8I:
      return Dtype::kI8;
    case CUDA_R_32I:
      return Dtype::kI32;
    case CUDA_R_8F_E4M3:
      return Dtype::kF8E4m3;
    case CUDA_R_8F_E5M2:
      return Dtype::kF8E5m2;
    default:
      return Dtype::kF32;
  }
}

std::vector<std::uint32_t> tiles_of(int id) {
  if (id == 1) return {18, 20};
  if (id == 6) return {15, 18, 20};
  return {20, 24, 393};
}
std::vector<std::uint32_t> stages_of(int id) {
  if (id == 1) return {};
  if (id == 6) return {8, 12};
  return {35};
}

template <class T>
cublasStatus_t give(void* to, std::size_t bytes, std::size_t* written, T value) {
  if (bytes != sizeof value) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, &value, sizeof value);
  if (written != nullptr) *written = sizeof value;
  return CUBLAS_STATUS_SUCCESS;
}

bool known(const std::vector<std::uint32_t>& all, std::uint32_t one) {
  return all.empty() ? one == 0 : std::find(all.begin(), all.end(), one) != all.end();
}

std::size_t workspace_of(const Algo& algo, const Layout& d) {
  if (algo.split < 2) return 0;
  const std::size_t elements = static_cast<std::size_t>(d.rows) *
                               static_cast<std::size_t>(d.columns) *
                               static_cast<std::size_t>(algo.split);
  if (algo.reduction == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) return elements * 4;
  if (algo.reduction == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)
    return elements * purlin::size_of(dtype_of(d.type));
  return 1024;  // in place: counters
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
size_t cublasLtGetVersion(void) {
  const long given = number("FAKE_CUBLASLT_VERSION");
  return given < 0 ? 130100 : static_cast<size_t>(given);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *desc = behind<cublasLtMatmulDescOpaque_t>(new Desc{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete behind<Desc>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  auto* desc = behind<Desc>(handle);
  const auto take = [&](auto& into) {
    if (bytes != sizeof into) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&into, value, sizeof into);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(desc->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(desc->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(desc->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(desc->bias);
    default:
      return CUBLAS_STATUS_SUCCESS;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  *layout = behind<cublasLtMatrixLayoutOpaque_t>(
      new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete behind<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  auto* layout = behind<Layout>(handle);
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == 4)
    std::memcpy(&layout->batch, value, 4);
  else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == 8)
    std::memcpy(&layout->stride, value, 8);
  else
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = behind<cublasLtMatmulPreferenceOpaque_t>(new std::size_t(0));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete behind<std::size_t>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    std::memcpy(behind<std::size_t>(preference), value, sizeof(std::size_t));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t,
                                        cudaDataType_t, cudaDataType_t, cudaDataType_t,
                                        cudaDataType_t, int wanted, int ids[], int* count) {
  constexpr int kAll[] = {1, 6, 66, 99};
  *count = std::min(wanted, 4);
  std::copy_n(kAll, *count, ids);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t, cudaDataType_t,
                                      cudaDataType_t, cudaDataType_t, cudaDataType_t,
                                      cudaDataType_t, int id, cublasLtMatmulAlgo_t* algo) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (id != 1 && id != 6 && id != 66) return CUBLAS_STATUS_NOT_SUPPORTED;
  Algo made;
  made.magic = kMagic;
  made.id = id;
  write(algo, made);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* handle,
                                                 cublasLtMatmulAlgoCapAttributes_t attribute,
                                                 void* to, size_t bytes, size_t* written) {
  const Algo algo = read(handle);
  const auto list = [&](const std::vector<std::uint32_t>& all) {
    const std::size_t size = all.size() * sizeof all[0];
    *written = size;
    if (bytes > 0) std::memcpy(to, all.data(), std::min(bytes, size));
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_ALGO_CAP_TILE_IDS:
      return list(tiles_of(algo.id));
    case CUBLASLT_ALGO_CAP_STAGES_IDS:
      return list(stages_of(algo.id));
    case CUBLASLT_ALGO_CAP_SPLITK_SUPPORT:
      return give(to, bytes, written, std::int32_t{algo.id == 6});
    case CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK:
      return give(to, bytes, written, std::uint32_t{algo.id == 6 ? 7U : 0U});
    case CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT:
      return give(to, bytes, written, std::uint32_t{algo.id == 6});
    case CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX:
      return give(to, bytes, written, std::int32_t{algo.id == 66 ? 3 : 0});
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* handle,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  Algo algo = read(handle);
  const auto take = [&](auto& into) {
    if (bytes != sizeof into) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&into, value, sizeof into);
    write(handle, algo);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
      return take(algo.tile);
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      return take(algo.split);
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      return take(algo.reduction);
    case CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING:
      return take(algo.swizzle);
    case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION:
      return take(algo.custom);
    case CUBLASLT_ALGO_CONFIG_STAGES_ID:
      return take(algo.stages);
    case CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID:
      return take(algo.inner);
    case CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID:
      return take(algo.cluster);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* handle,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* to, size_t bytes, size_t* written) {
  const Algo algo = read(handle);
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_ID:
      return give(to, bytes, written, algo.id);
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
      return give(to, bytes, written, algo.tile);
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      return give(to, bytes, written, algo.split);
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME:
      return give(to, bytes, written, algo.reduction);
    case CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING:
      return give(to, bytes, written, algo.swizzle);
    case CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION:
      return give(to, bytes, written, algo.custom);
    case CUBLASLT_ALGO_CONFIG_STAGES_ID:
      return give(to, bytes, written, algo.stages);
    case CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID:
      return give(to, bytes, written, algo.inner);
    default:
      return give(to, bytes, written, algo.cluster);
  }
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* handle,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const Algo algo = read(handle);
  bool good = algo.magic == kMagic && known(tiles_of(algo.id), algo.tile) &&
              known(stages_of(algo.id), algo.stages) && algo.inner == 0 && algo.split >= 1;
  if (number("FAKE_CUBLASLT_REFUSE") == static_cast<long>(algo.tile)) good = false;
  const bool splits = algo.split > 1;
  if (algo.id == 6) {
    good = good && !(algo.tile == 20 && algo.stages == 12) && algo.cluster == 0 &&
           algo.custom == 0 && algo.swizzle <= 1 && algo.split <= 8 &&
           splits == (algo.reduction > 0) && algo.reduction <= 4 && algo.reduction != 3;
  } else {
    good = good && !splits && algo.reduction == 0 && algo.swizzle == 0;
  }
  if (algo.id == 1) good = good && algo.cluster == 0 && algo.custom == 0;
  if (algo.id == 66)
    good = good &&
           (algo.cluster == 0 || algo.cluster == 2 || algo.cluster == 3 || algo.cluster == 5) &&
           algo.custom <= 3 && (algo.custom != 3 || algo.cluster == 3);
  if (!good) return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  result->workspaceSize = workspace_of(algo, *behind<Layout>(d));
  result->wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t found[], int* count) {
  Algo first, second, third;
  first.magic = second.magic = third.magic = kMagic;
  first.id = 66, first.tile = 20, first.stages = 35, first.cluster = 2;
  second.id = 6, second.tile = 18, second.stages = 8, second.split = 4, second.reduction = 2;
  third.id = 1, third.tile = 18;
  if (number("FAKE_CUBLASLT_HIDDEN") == 1) second.hidden = 7;
  *count = 0;
  for (const Algo& one : {first, second, third}) {
    if (*count == wanted) break;
    cublasLtMatmulAlgo_t algo;
    write(&algo, one);
    cublasLtMatmulHeuristicResult_t& result = found[*count];
    if (cublasLtMatmulAlgoCheck(handle, desc, a, b, c, d, &algo, &result) !=
            CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > *behind<std::size_t>(preference))
      continue;
    result.algo = algo;
    result.state = CUBLAS_STATUS_SUCCESS;
    ++*count;
  }
  return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc_handle,
                              const void*, const void* a, cublasLtMatrixLayout_t a_handle,
                              const void* b, cublasLtMatrixLayout_t b_handle, const void*,
                              const void*, cublasLtMatrixLayout_t c_handle, void* d,
                              cublasLtMatrixLayout_t d_handle, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t) {
  const auto& desc = *behind<Desc>(desc_handle);
  const auto &la = *behind<Layout>(a_handle), &lb = *behind<Layout>(b_handle),
             &ld = *behind<Layout>(d_handle);
  cublasLtMatmulAlgo_t chosen;
  if (algo == nullptr) {
    cublasLtMatmulAlgoInit(handle, desc.compute, desc.scale, la.type, lb.type, ld.type, ld.type, 1,
                           &chosen);
    Algo plain = read(&chosen);
    plain.tile = 18;
    write(&chosen, plain);
    algo = &chosen;
  }
  cublasLtMatmulHeuristicResult_t result;
  const cublasStatus_t checked = cublasLtMatmulAlgoCheck(handle, desc_handle, a_handle, b_handle,
                                                         c_handle, d_handle, algo, &result);
  if (checked != CUBLAS_STATUS_SUCCESS) return checked;
  if (result.workspaceSize > workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  const Algo plan = read(algo);
  if (result.workspaceSize > 0) std::memset(workspace, 0x11, result.workspaceSize);
  if (number("FAKE_CUBLASLT_STRAY") == static_cast<long>(plan.tile))
    static_cast<char*>(workspace)[std::size_t{32} << 20] = 1;
  const std::int64_t depth = desc.transpose_a != 0 ? la.rows : la.columns;
  const bool wrong = number("FAKE_CUBLASLT_WRONG") == static_cast<long>(plan.tile);
  const Dtype ta = dtype_of(la.type), tb = dtype_of(lb.type), td = dtype_of(ld.type);
  const auto at = [](const void* base, Dtype type, std::int64_t index) {
    return static_cast<const char*>(base) +
           index * static_cast<std::int64_t>(purlin::size_of(type));
  };
  for (std::int64_t z = 0; z < ld.batch; ++z)
    for (std::int64_t j = 0; j < ld.columns; ++j)
      for (std::int64_t i = 0; i < ld.rows; ++i) {
        double sum = 0;
        for (std::int64_t l = 0; l < depth; ++l) {
          const std::int64_t ia = desc.transpose_a != 0 ? l + i * la.ld : i + l * la.ld;
          const std::int64_t ib = desc.transpose_b != 0 ? j + l * lb.ld : l + j * lb.ld;
          sum += purlin::load_element(ta, at(a, ta, z * la.stride + ia)) *
                 purlin::load_element(tb, at(b, tb, z * lb.stride + ib));
        }
        if ((desc.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
          sum += purlin::load_element(td, at(desc.bias, td, i));
        if ((desc.epilogue & CUBLASLT_EPILOGUE_RELU) != 0) sum = std::max(sum, 0.0);
        if ((desc.epilogue & CUBLASLT_EPILOGUE_GELU) != 0)
          sum = 0.5 * sum * (1 + std::tanh(0.7978845608 * (sum + 0.044715 * sum * sum * sum)));
        if (wrong && i == 0) sum = 2 * sum + 100;
        purlin::store_element(td, const_cast<char*>(at(d, td, z * ld.stride + i + j * ld.ld)), sum);
      }
  if (const char* path = std::getenv("FAKE_CUBLASLT_LOG"); path != nullptr)
    if (std::FILE* file = std::fopen(path, "a"); file != nullptr) {
      std::fprintf(file, "%lld x %lld x %lld algo %d tile %u split %d cluster %d\n",
                   static_cast<long long>(ld.columns), static_cast<long long>(ld.rows),
                   static_cast<long long>(depth), plan.id, plan.tile, plan.split,
                   int{plan.cluster});
      std::fclose(file);
    }
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
