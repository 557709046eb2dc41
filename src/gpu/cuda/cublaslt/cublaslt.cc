// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/cublaslt/cublaslt.h"

#include "base/os/library.h"
#include "base/text.h"
#include "gpu/vendor_libraries.h"

#include <dlfcn.h>

namespace purlin::gpu {
namespace {

// Attributes in the order of library_parameters(), and how wide the library wants them.
struct Attribute {
  cublasLtMatmulAlgoConfigAttributes_t id;
  std::size_t bytes;
};
constexpr Attribute kAttributes[] = {
    {CUBLASLT_ALGO_CONFIG_ID, 4},
    {CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
    {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
    {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
    {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
    {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
    {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
    {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
    {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
};

template <class Find>
bool bind_all(LtFunctions& lt, std::string& missing, const Find& find) {
#define PURLIN_BIND(function)                                             \
  lt.function = reinterpret_cast<decltype(lt.function)>(find(#function)); \
  if (lt.function == nullptr && missing.empty()) missing = #function;
  PURLIN_CUBLASLT_FUNCTIONS(PURLIN_BIND)
#undef PURLIN_BIND
  return missing.empty();
}

cudaDataType_t data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF16:
      return CUDA_R_16F;
    case Dtype::kBf16:
      return CUDA_R_16BF;
    case Dtype::kF64:
      return CUDA_R_64F;
    case Dtype::kI8:
      return CUDA_R_8I;
    case Dtype::kI32:
      return CUDA_R_32I;
    case Dtype::kF8E4m3:
      return CUDA_R_8F_E4M3;
    case Dtype::kF8E5m2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_32F;
  }
}

cublasLtEpilogue_t epilogue_of(const LibraryOperation& operation) {
  if (operation.epilogue == "bias") return CUBLASLT_EPILOGUE_BIAS;
  if (operation.epilogue == "relu") return CUBLASLT_EPILOGUE_RELU;
  if (operation.epilogue == "gelu") return CUBLASLT_EPILOGUE_GELU;
  if (operation.epilogue == "relu_bias") return CUBLASLT_EPILOGUE_RELU_BIAS;
  if (operation.epilogue == "gelu_bias") return CUBLASLT_EPILOGUE_GELU_BIAS;
  return CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

std::string LtFunctions::version() const {
  const std::size_t number = cublasLtGetVersion();
  return fmt::format("cuBLASLt {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

Result<LtFunctions> load_cublaslt() {
  PURLIN_ASSIGN(const Library library, Library::open(vendor_library_names("cublasLt", {13, 12})));
  LtFunctions lt;
  std::string missing;
  if (!bind_all(lt, missing, [&](const char* name) { return library.find(name); }))
    return error(Code::kUnavailable, "{} has no {}; cuBLASLt 12 or newer is needed", library.name(),
                 missing);
  return lt;
}

Result<LtFunctions> loaded_cublaslt() {
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) {
    void* handle = ::dlopen(name, RTLD_NOLOAD | RTLD_NOW);
    if (handle == nullptr) continue;
    LtFunctions lt;
    std::string missing;
    if (bind_all(lt, missing, [&](const char* symbol) { return ::dlsym(handle, symbol); }))
      return lt;
  }
  return error(Code::kNotFound,
               "this process has loaded neither libcublasLt.so.13 nor .12; load the library, and "
               "make a handle, before asking for its algorithms");
}

Status lt_failure(std::string_view what, cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return Status::ok();
    case CUBLAS_STATUS_NOT_INITIALIZED:
    case CUBLAS_STATUS_ALLOC_FAILED:
      return error(Code::kUnavailable,
                   "{}: cuBLASLt does not start (status {}); is there a driver, "
                   "and memory left on the GPU?",
                   what, static_cast<int>(status));
    case CUBLAS_STATUS_EXECUTION_FAILED:
    case CUBLAS_STATUS_INTERNAL_ERROR:
    case CUBLAS_STATUS_MAPPING_ERROR:
      return error(Code::kFailed, "{}: cuBLASLt failed on the device (status {})", what,
                   static_cast<int>(status));
    default:
      return error(Code::kInvalid, "{}: cuBLASLt refuses it (status {})", what,
                   static_cast<int>(status));
  }
}

LtTypes lt_types(const LibraryOperation& operation) {
  LtTypes types{CUBLAS_COMPUTE_32F, CUDA_R_32F, data_type(operation.a), data_type(operation.b),
                data_type(operation.d)};
  if (operation.compute == "tf32") types.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  if (operation.compute == "i32") types.compute = CUBLAS_COMPUTE_32I, types.scale = CUDA_R_32I;
  if (operation.compute == "f64") types.compute = CUBLAS_COMPUTE_64F, types.scale = CUDA_R_64F;
  return types;
}

Result<cublasLtMatmulAlgo_t> build_lt_algorithm(const LtFunctions& lt, cublasLtHandle_t handle,
                                                const LtTypes& types, const Config& config) {
  std::int32_t values[std::size(kAttributes)] = {};
  const std::vector<std::string>& names = library_parameters();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Value* value = config.find(names[i]);
    const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    if (number == nullptr || *number < 0 ||
        *number > (kAttributes[i].bytes == 2 ? 0xFFFF : 1 << 30))
      return error(Code::kInvalid, "the config '{}' has no usable value for '{}'", config.text(),
                   names[i]);
    values[i] = static_cast<std::int32_t>(*number);
  }
  cublasLtMatmulAlgo_t algo{};
  const cublasStatus_t made = lt.cublasLtMatmulAlgoInit(
      handle, types.compute, types.scale, types.a, types.b, types.d, types.d, values[0], &algo);
  if (made != CUBLAS_STATUS_SUCCESS) return lt_failure(fmt::format("algo {}", values[0]), made);
  for (std::size_t i = 1; i < std::size(kAttributes); ++i) {
    const auto narrow = static_cast<std::uint16_t>(values[i]);
    const void* from = kAttributes[i].bytes == 2 ? static_cast<const void*>(&narrow) : &values[i];
    const cublasStatus_t set = lt.cublasLtMatmulAlgoConfigSetAttribute(&algo, kAttributes[i].id,
                                                                       from, kAttributes[i].bytes);
    if (set != CUBLAS_STATUS_SUCCESS)
      return lt_failure(fmt::format("algo {}, {} = {}", values[0], names[i], values[i]), set);
  }
  return algo;
}

Result<Config> read_lt_algorithm(const LtFunctions& lt, const cublasLtMatmulAlgo_t& algo) {
  Config config;
  const std::vector<std::string>& names = library_parameters();
  for (std::size_t i = 0; i < std::size(kAttributes); ++i) {
    std::int32_t wide = 0;
    std::uint16_t narrow = 0;
    const bool is_narrow = kAttributes[i].bytes == 2;
    void* to = is_narrow ? static_cast<void*>(&narrow) : &wide;
    std::size_t written = 0;
    const cublasStatus_t got = lt.cublasLtMatmulAlgoConfigGetAttribute(
        &algo, kAttributes[i].id, to, kAttributes[i].bytes, &written);
    if (got != CUBLAS_STATUS_SUCCESS) return lt_failure("reading " + names[i], got);
    config.set(names[i], std::int64_t{is_narrow ? narrow : wide});
  }
  return config;
}

Result<LtAlgorithm> check_lt_algorithm(const LtFunctions& lt, cublasLtHandle_t handle,
                                       const LtTypes& types, const LtDescriptors& of,
                                       const Config& config, std::size_t workspace_bytes) {
  LtAlgorithm algorithm;
  PURLIN_ASSIGN(algorithm.algo, build_lt_algorithm(lt, handle, types, config));
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = lt.cublasLtMatmulAlgoCheck(handle, of.operation, of.a, of.b, of.c,
                                                           of.d, &algorithm.algo, &result);
  if (status != CUBLAS_STATUS_SUCCESS)
    return lt_failure("the config '" + config.text() + "'", status);
  algorithm.workspace_bytes = result.workspaceSize;
  if (result.workspaceSize > workspace_bytes)
    return error(Code::kInvalid, "the config '{}' needs {} bytes of workspace; {} are allowed",
                 config.text(), result.workspaceSize, workspace_bytes);
  return algorithm;
}

Result<std::unique_ptr<LtProduct>> LtProduct::create(const LtFunctions& lt, cublasLtHandle_t handle,
                                                     const LibraryOperation& operation,
                                                     const ProblemShape& problem) {
  const auto extent = [&](std::string_view name) {
    const std::int64_t* value = problem.find(name);
    return value == nullptr ? std::int64_t{0} : *value;
  };
  const std::int64_t batch = operation.batched ? extent("BATCH") : 1;
  if (extent("M") < 1 || extent("N") < 1 || extent("K") < 1 || batch < 1)
    return error(Code::kInvalid, "a product needs M, N and K{}; there is {}",
                 operation.batched ? " and BATCH" : "", problem.text());
  std::unique_ptr<LtProduct> product(new LtProduct(lt, handle, operation));
  PURLIN_TRY(product->describe(extent("M"), extent("N"), extent("K"), batch));
  return product;
}

Status LtProduct::describe(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch) {
  LtDescriptors& out = descriptors_;
  PURLIN_TRY(
      lt_failure("describing the product",
                 lt_.cublasLtMatmulDescCreate(&out.operation, types_.compute, types_.scale)));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
    return lt_failure(
        "describing the product",
        lt_.cublasLtMatmulDescSetAttribute(out.operation, attribute, &value, sizeof value));
  };
  const auto way = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  PURLIN_TRY(set(CUBLASLT_MATMUL_DESC_TRANSA, way(operation_.transpose_b)));
  PURLIN_TRY(set(CUBLASLT_MATMUL_DESC_TRANSB, way(operation_.transpose_a)));
  PURLIN_TRY(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(operation_)));
  const auto layout = [&](cublasLtMatrixLayout_t& made, cudaDataType_t type, std::int64_t rows,
                          std::int64_t columns) -> Status {
    PURLIN_TRY(lt_failure("describing a matrix", lt_.cublasLtMatrixLayoutCreate(
                                                     &made, type, static_cast<std::uint64_t>(rows),
                                                     static_cast<std::uint64_t>(columns), rows)));
    if (!operation_.batched) return Status::ok();
    const auto count = static_cast<std::int32_t>(batch);
    const std::int64_t stride = rows * columns;
    PURLIN_TRY(lt_failure("describing a batch",
                          lt_.cublasLtMatrixLayoutSetAttribute(
                              made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count)));
    return lt_failure("describing a batch", lt_.cublasLtMatrixLayoutSetAttribute(
                                                made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof stride));
  };
  // A row-major R x C is a column-major C x R.
  PURLIN_TRY(operation_.transpose_b ? layout(out.a, types_.b, k, n)
                                    : layout(out.a, types_.b, n, k));
  PURLIN_TRY(operation_.transpose_a ? layout(out.b, types_.a, m, k)
                                    : layout(out.b, types_.a, k, m));
  PURLIN_TRY(layout(out.d, types_.d, n, m));
  out.c = out.d;
  return Status::ok();
}

LtProduct::~LtProduct() {
  if (descriptors_.operation != nullptr) lt_.cublasLtMatmulDescDestroy(descriptors_.operation);
  for (cublasLtMatrixLayout_t layout : {descriptors_.a, descriptors_.b, descriptors_.d})
    if (layout != nullptr) lt_.cublasLtMatrixLayoutDestroy(layout);
}

Result<LtAlgorithm> LtProduct::build(const Config& config) const {
  return check_lt_algorithm(lt_, handle_, types_, descriptors_, config,
                            static_cast<std::size_t>(operation_.workspace_bytes));
}

std::vector<cublasLtMatmulHeuristicResult_t> LtProduct::proposals(int at_most) const {
  cublasLtMatmulPreference_t preference = nullptr;
  if (lt_.cublasLtMatmulPreferenceCreate(&preference) != CUBLAS_STATUS_SUCCESS) return {};
  const auto workspace = static_cast<std::size_t>(operation_.workspace_bytes);
  lt_.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &workspace, sizeof workspace);
  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(at_most));
  int count = 0;
  const cublasStatus_t status = lt_.cublasLtMatmulAlgoGetHeuristic(
      handle_, descriptors_.operation, descriptors_.a, descriptors_.b, descriptors_.c,
      descriptors_.d, preference, at_most, found.data(), &count);
  lt_.cublasLtMatmulPreferenceDestroy(preference);
  found.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
  std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

Status LtProduct::point_bias(const void* bias) {
  return lt_failure("the bias", lt_.cublasLtMatmulDescSetAttribute(
                                    descriptors_.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                    &bias, sizeof bias));
}

Status LtProduct::launch(const LtAlgorithm& algorithm, const Pointers& pointers,
                         cudaStream_t stream) const {
  const float one = 1, zero = 0;
  const double one_wide = 1, zero_wide = 0;
  const std::int32_t one_whole = 1, zero_whole = 0;
  const void *alpha = &one, *beta = &zero;
  if (types_.scale == CUDA_R_64F) alpha = &one_wide, beta = &zero_wide;
  if (types_.scale == CUDA_R_32I) alpha = &one_whole, beta = &zero_whole;
  const cublasStatus_t status = lt_.cublasLtMatmul(
      handle_, descriptors_.operation, alpha, pointers.b, descriptors_.a, pointers.a,
      descriptors_.b, beta, pointers.d, descriptors_.c, pointers.d, descriptors_.d, &algorithm.algo,
      pointers.workspace, algorithm.workspace_bytes, stream);
  return lt_failure("cublasLtMatmul", status);
}

}  // namespace purlin::gpu
