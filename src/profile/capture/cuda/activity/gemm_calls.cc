// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/gemm_calls.h"

#if __has_include(<cublasLt.h>)

#include "profile/capture/cuda/cupti/interpose.h"
#include "profile/capture/ranges/gemm_text.h"
#include "profile/capture/ranges/range_log.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <cublasLt.h>
#include <cublas_api.h>
#include <dlfcn.h>
#include <link.h>
#include <tuple>
#include <utility>

namespace purlin::profile::capture::cuda {
namespace {

const char* type_name(int type) {
  switch (type) {
    case CUDA_R_16F:
      return "f16";
    case CUDA_R_16BF:
      return "bf16";
    case CUDA_R_32F:
      return "f32";
    case CUDA_R_64F:
      return "f64";
    case CUDA_C_32F:
      return "c64";
    case CUDA_C_64F:
      return "c128";
    case CUDA_R_8I:
      return "i8";
    case CUDA_R_8U:
      return "u8";
    case CUDA_R_32I:
      return "i32";
    case CUDA_R_8F_E4M3:
      return "f8e4m3";
    case CUDA_R_8F_E5M2:
      return "f8e5m2";
    case 33:
      return "f4e2m1";  // CUDA_R_4F_E2M1, of CUDA 12.8
    default:
      return "";
  }
}

const char* compute_name(int type) {
  switch (type) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return "f16";
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return "f32";
    case CUBLAS_COMPUTE_32F_FAST_16F:
      return "fast_f16";
    case CUBLAS_COMPUTE_32F_FAST_16BF:
      return "fast_bf16";
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return "tf32";
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return "f64";
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return "i32";
    default:
      return "other";
  }
}

const char* epilogue_name(std::uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
      return "";
    case CUBLASLT_EPILOGUE_RELU:
      return "relu";
    case CUBLASLT_EPILOGUE_RELU_AUX:
      return "relu_aux";
    case CUBLASLT_EPILOGUE_BIAS:
      return "bias";
    case CUBLASLT_EPILOGUE_RELU_BIAS:
      return "relu_bias";
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
      return "relu_aux_bias";
    case CUBLASLT_EPILOGUE_DRELU:
      return "drelu";
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
      return "drelu_bgrad";
    case CUBLASLT_EPILOGUE_GELU:
      return "gelu";
    case CUBLASLT_EPILOGUE_GELU_AUX:
      return "gelu_aux";
    case CUBLASLT_EPILOGUE_GELU_BIAS:
      return "gelu_bias";
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      return "gelu_aux_bias";
    case CUBLASLT_EPILOGUE_DGELU:
      return "dgelu";
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
      return "dgelu_bgrad";
    case CUBLASLT_EPILOGUE_BGRADA:
      return "bgrad_a";
    case CUBLASLT_EPILOGUE_BGRADB:
      return "bgrad_b";
    default:
      return "other";
  }
}

bool transposes(cublasOperation_t operation) { return operation != CUBLAS_OP_N; }

// ---- the arguments of each family of functions ----

template <class Int>
GemmFacts sizes(cublasOperation_t a, cublasOperation_t b, Int m, Int n, Int k) {
  GemmFacts facts;
  facts.transposed_a = transposes(a);
  facts.transposed_b = transposes(b);
  facts.m = m, facts.n = n, facts.k = k;
  return facts;
}

template <class Int>
void leading(GemmFacts& facts, Int a, Int b, Int c) {
  facts.lda = a, facts.ldb = b, facts.ldc = c;
}

void types(GemmFacts& facts, int a, int b, int c) {
  facts.type_a = type_name(a), facts.type_b = type_name(b), facts.type_c = type_name(c);
}

constexpr int type_of(const float*) { return CUDA_R_32F; }
constexpr int type_of(const double*) { return CUDA_R_64F; }
constexpr int type_of(const cuComplex*) { return CUDA_C_32F; }
constexpr int type_of(const cuDoubleComplex*) { return CUDA_C_64F; }
constexpr int type_of(const __half*) { return CUDA_R_16F; }

// cublasSgemm and the same for other types.
template <class T, class Int>
GemmFacts describe(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,
                   const T* alpha, const T*, Int lda, const T*, Int ldb, const T*, T*, Int ldc) {
  GemmFacts facts = sizes(ta, tb, m, n, k);
  leading(facts, lda, ldb, ldc);
  types(facts, type_of(alpha), type_of(alpha), type_of(alpha));
  return facts;
}

// cublasSgemmStridedBatched.
template <class T, class Int>
GemmFacts describe(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,
                   const T* alpha, const T*, Int lda, long long, const T*, Int ldb, long long,
                   const T*, T*, Int ldc, long long, Int batch) {
  GemmFacts facts = sizes(ta, tb, m, n, k);
  leading(facts, lda, ldb, ldc);
  types(facts, type_of(alpha), type_of(alpha), type_of(alpha));
  facts.batch = batch;
  return facts;
}

// cublasSgemmBatched.
template <class T, class Int>
GemmFacts describe(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,
                   const T* alpha, const T* const*, Int lda, const T* const*, Int ldb, const T*,
                   T* const*, Int ldc, Int batch) {
  GemmFacts facts = sizes(ta, tb, m, n, k);
  leading(facts, lda, ldb, ldc);
  types(facts, type_of(alpha), type_of(alpha), type_of(alpha));
  facts.batch = batch;
  return facts;
}

// cublasSgemmEx, cublasCgemmEx.
template <class T, class Int>
GemmFacts describe(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,
                   const T*, const void*, cudaDataType a, Int lda, const void*, cudaDataType b,
                   Int ldb, const T*, void*, cudaDataType c, Int ldc) {
  GemmFacts facts = sizes(ta, tb, m, n, k);
  leading(facts, lda, ldb, ldc);
  types(facts, a, b, c);
  return facts;
}

// cublasGemmEx.
template <class Int>
GemmFacts describe(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,
                   const void*, const void*, cudaDataType a, Int lda, const void*, cudaDataType b,
                   Int ldb, const void*, void*, cudaDataType c, Int ldc,
                   cublasComputeType_t compute, cublasGemmAlgo_t) {
  GemmFacts facts = sizes(ta, tb, m, n, k);
  leading(facts, lda, ldb, ldc);
  types(facts, a, b, c);
  facts.compute = compute_name(compute);
  return facts;
}

// cublasGemmStridedBatchedEx.
template <class Int>
GemmFacts describe(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,
                   const void*, const void*, cudaDataType a, Int lda, long long, const void*,
                   cudaDataType b, Int ldb, long long, const void*, void*, cudaDataType c, Int ldc,
                   long long, Int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  GemmFacts facts = sizes(ta, tb, m, n, k);
  leading(facts, lda, ldb, ldc);
  types(facts, a, b, c);
  facts.batch = batch;
  facts.compute = compute_name(compute);
  return facts;
}

// cublasGemmBatchedEx.
template <class Int>
GemmFacts describe(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, Int m, Int n, Int k,
                   const void*, const void* const*, cudaDataType a, Int lda, const void* const*,
                   cudaDataType b, Int ldb, const void*, void* const*, cudaDataType c, Int ldc,
                   Int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
  GemmFacts facts = sizes(ta, tb, m, n, k);
  leading(facts, lda, ldb, ldc);
  types(facts, a, b, c);
  facts.batch = batch;
  facts.compute = compute_name(compute);
  return facts;
}

// cuBLASLt's descriptors are opaque: the library that made them is asked.
decltype(&cublasLtMatmulDescGetAttribute) matmul_attribute = nullptr;
decltype(&cublasLtMatrixLayoutGetAttribute) layout_attribute = nullptr;

template <class T>
T of_matmul(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t which, T otherwise) {
  if (matmul == nullptr) return otherwise;  // the program's mistake: cuBLASLt answers it
  std::size_t written = 0;
  T value = otherwise;
  return matmul_attribute(matmul, which, &value, sizeof value, &written) == CUBLAS_STATUS_SUCCESS
             ? value
             : otherwise;
}

struct Layout {
  std::int64_t rows = 0, columns = 0, leading = 0;
  std::int32_t type = -1, order = CUBLASLT_ORDER_COL, batch = 1;
};

Layout layout_of(cublasLtMatrixLayout_t matrix) {
  Layout out;
  const auto read = [&](cublasLtMatrixLayoutAttribute_t which, auto& value) {
    std::size_t written = 0;
    auto got = value;
    if (layout_attribute(matrix, which, &got, sizeof got, &written) == CUBLAS_STATUS_SUCCESS)
      value = got;
  };
  if (matrix == nullptr) return out;
  read(CUBLASLT_MATRIX_LAYOUT_ROWS, out.rows);
  read(CUBLASLT_MATRIX_LAYOUT_COLS, out.columns);
  read(CUBLASLT_MATRIX_LAYOUT_LD, out.leading);
  read(CUBLASLT_MATRIX_LAYOUT_TYPE, out.type);
  read(CUBLASLT_MATRIX_LAYOUT_ORDER, out.order);
  read(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, out.batch);
  return out;
}

GemmFacts describe(cublasLtHandle_t, cublasLtMatmulDesc_t matmul, const void*, const void*,
                   cublasLtMatrixLayout_t a, const void*, cublasLtMatrixLayout_t b, const void*,
                   const void*, cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t d,
                   const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t) {
  const Layout left = layout_of(a), right = layout_of(b), result = layout_of(d);
  const auto none = static_cast<std::int32_t>(CUBLAS_OP_N);
  GemmFacts facts;
  facts.transposed_a = of_matmul(matmul, CUBLASLT_MATMUL_DESC_TRANSA, none) != none;
  facts.transposed_b = of_matmul(matmul, CUBLASLT_MATMUL_DESC_TRANSB, none) != none;
  facts.m = result.rows;
  facts.n = result.columns;
  facts.k = facts.transposed_a ? left.rows : left.columns;
  facts.batch = result.batch;
  facts.row_major = result.order == CUBLASLT_ORDER_ROW;
  leading(facts, left.leading, right.leading, result.leading);
  types(facts, left.type, right.type, result.type);
  facts.compute = compute_name(
      of_matmul(matmul, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, static_cast<std::int32_t>(-1)));
  facts.epilogue = epilogue_name(of_matmul(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                           static_cast<std::uint32_t>(CUBLASLT_EPILOGUE_DEFAULT)));
  return facts;
}

// ---- the replacements ----

thread_local int inside = 0;  // a product that is part of another is not one

class Product {
 public:
  Product() {
    outermost_ = inside++ == 0;
    log_ = outermost_ ? RangeLog::instance() : nullptr;
    if (log_ != nullptr && !log_->listening()) log_ = nullptr;
  }
  ~Product() {
    --inside;
    if (log_ != nullptr) log_->leave(kLibraryDomain);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  bool wanted() const { return log_ != nullptr; }
  void begin(GemmFacts facts, const char* entry) {
    facts.entry = entry;
    OpText text;
    write_gemm(facts, text);
    log_->enter(NameKind::kGemm, text.view(), kLibraryDomain);
  }

 private:
  bool outermost_ = false;
  RangeLog* log_ = nullptr;
};

// One for each function: `Which` only makes them different.
template <std::size_t Which, class Function>
struct StandIn;

template <std::size_t Which, class... Arguments>
struct StandIn<Which, cublasStatus_t (*)(Arguments...)> {
  static inline cublasStatus_t (*original)(Arguments...) = nullptr;
  static inline const char* name = "";
  static cublasStatus_t call(Arguments... arguments) {
    Product product;
    if (product.wanted()) product.begin(describe(arguments...), name);
    return original(arguments...);
  }
};

struct GemmEntry {
  const char* name;
  void** original;
  void* stand_in;
};

template <std::size_t Which, class Function>
GemmEntry entry(const char* name) {
  using This = StandIn<Which, Function>;
  This::name = name;
  return {name, reinterpret_cast<void**>(&This::original), reinterpret_cast<void*>(&This::call)};
}

// The header overloads these for C++.
template <class Int>
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, Int, Int,
                                  Int, const void*, const void*, cudaDataType, Int, const void*,
                                  cudaDataType, Int, const void*, void*, cudaDataType, Int,
                                  cublasComputeType_t, cublasGemmAlgo_t);
template <class Int>
using GemmStridedBatchedEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t,
                                                cublasOperation_t, Int, Int, Int, const void*,
                                                const void*, cudaDataType, Int, long long,
                                                const void*, cudaDataType, Int, long long,
                                                const void*, void*, cudaDataType, Int, long long,
                                                Int, cublasComputeType_t, cublasGemmAlgo_t);
template <class Int>
using GemmBatchedEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, Int,
                                         Int, Int, const void*, const void* const*, cudaDataType,
                                         Int, const void* const*, cudaDataType, Int, const void*,
                                         void* const*, cudaDataType, Int, Int, cublasComputeType_t,
                                         cublasGemmAlgo_t);

#define PURLIN_ENTRY(function) entry<__COUNTER__, decltype(&function)>(#function)
#define PURLIN_OVERLOADED(function, Type)                                                    \
  entry<__COUNTER__, Type<int>>(#function), entry<__COUNTER__, Type<std::int64_t>>(#function \
                                                                                   "_6"      \
                                                                                   "4")
#define PURLIN_BOTH(function) PURLIN_ENTRY(function), PURLIN_ENTRY(function##_64)

template <std::size_t Size>
bool stand_in(void* library, const std::array<GemmEntry, Size>& entries, std::string& reason) {
  std::array<Replacement, Size> replacements;
  std::size_t found = 0;
  for (const GemmEntry& each : entries) {
    void* function = ::dlsym(library, each.name);
    if (function == nullptr) continue;  // of another version
    *each.original = function;
    replacements[found++] = {each.name, function, each.stand_in};
  }
  if (found == 0) return false;
  return interpose(replacements.data(), found, reason);
}

bool stand_in_for_cublas(void* library, std::string& reason) {
  const std::array entries = {
      PURLIN_BOTH(cublasSgemm_v2),
      PURLIN_BOTH(cublasDgemm_v2),
      PURLIN_BOTH(cublasCgemm_v2),
      PURLIN_BOTH(cublasZgemm_v2),
      PURLIN_BOTH(cublasHgemm),
      PURLIN_BOTH(cublasCgemm3m),
      PURLIN_BOTH(cublasSgemmStridedBatched),
      PURLIN_BOTH(cublasDgemmStridedBatched),
      PURLIN_BOTH(cublasCgemmStridedBatched),
      PURLIN_BOTH(cublasZgemmStridedBatched),
      PURLIN_BOTH(cublasHgemmStridedBatched),
      PURLIN_BOTH(cublasSgemmBatched),
      PURLIN_BOTH(cublasDgemmBatched),
      PURLIN_BOTH(cublasCgemmBatched),
      PURLIN_BOTH(cublasZgemmBatched),
      PURLIN_BOTH(cublasHgemmBatched),
      PURLIN_BOTH(cublasSgemmEx),
      PURLIN_BOTH(cublasCgemmEx),
      PURLIN_OVERLOADED(cublasGemmEx, GemmEx),
      PURLIN_OVERLOADED(cublasGemmStridedBatchedEx, GemmStridedBatchedEx),
      PURLIN_OVERLOADED(cublasGemmBatchedEx, GemmBatchedEx),
  };
  return stand_in(library, entries, reason);
}

bool stand_in_for_cublaslt(void* library, std::string& reason) {
  matmul_attribute = reinterpret_cast<decltype(matmul_attribute)>(
      ::dlsym(library, "cublasLtMatmulDescGetAttribute"));
  layout_attribute = reinterpret_cast<decltype(layout_attribute)>(
      ::dlsym(library, "cublasLtMatrixLayoutGetAttribute"));
  if (matmul_attribute == nullptr || layout_attribute == nullptr) return false;
  return stand_in(library, std::array{PURLIN_ENTRY(cublasLtMatmul)}, reason);
}
#undef PURLIN_BOTH
#undef PURLIN_OVERLOADED
#undef PURLIN_ENTRY

struct Libraries {
  std::string cublas, cublaslt;
  unsigned long long added = 0;
};

int look(dl_phdr_info* info, std::size_t, void* found) {
  auto& libraries = *static_cast<Libraries*>(found);
  libraries.added = info->dlpi_adds;
  const std::string path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const std::string file = path.substr(path.rfind('/') + 1);
  if (file.rfind("libcublas.so", 0) == 0 && libraries.cublas.empty()) libraries.cublas = path;
  if (file.rfind("libcublasLt.so", 0) == 0 && libraries.cublaslt.empty()) libraries.cublaslt = path;
  return 0;
}

unsigned long long added_at_last_look = 0;
bool cublas_done = false, cublaslt_done = false;

int look_at_counter(dl_phdr_info* info, std::size_t, void* added) {
  *static_cast<unsigned long long*>(added) = info->dlpi_adds;
  return 1;
}

}  // namespace

bool libraries_changed() {
  unsigned long long added = 0;
  ::dl_iterate_phdr(&look_at_counter, &added);
  return added != std::exchange(added_at_last_look, added);
}

bool install_gemm_calls(std::string& reason) {
  Libraries libraries;
  ::dl_iterate_phdr(&look, &libraries);
  // A library that is replaced stays loaded: its code is now called from here.
  const auto open = [](const std::string& path) {
    return path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  };
  // cuBLAS first. Otherwise a product of cuBLAS that asks cuBLASLt is recorded as one of cuBLASLt
  // until both are replaced.
  if (!cublas_done)
    if (void* library = open(libraries.cublas)) cublas_done = stand_in_for_cublas(library, reason);
  if (!cublaslt_done)
    if (void* library = open(libraries.cublaslt))
      cublaslt_done = stand_in_for_cublaslt(library, reason);
  return cublas_done || cublaslt_done;
}

}  // namespace purlin::profile::capture::cuda

#else  // built without cuBLAS's headers

namespace purlin::profile::capture::cuda {

bool libraries_changed() { return false; }
bool install_gemm_calls(std::string&) { return false; }

}  // namespace purlin::profile::capture::cuda

#endif
