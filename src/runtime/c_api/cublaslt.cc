// SPDX-License-Identifier: Apache-2.0
// libpurlin: the C interface's products of cuBLASLt, over LibraryProduct.
#include "runtime/c_api/support.h"
#include "runtime/library_product.h"

#include <purlin/purlin.h>

struct purlin_cublaslt {
  purlin::runtime::LibraryProduct product;
};

namespace {

using purlin::Dtype;
using purlin::LibraryOperation;
using purlin::Result;
using purlin::runtime::fail;
using purlin::runtime::guarded;
using purlin::runtime::LibraryProduct;
using purlin::runtime::text_or_empty;

Result<LibraryOperation> operation_of(const purlin_cublaslt_desc& desc) {
  LibraryOperation operation;
  const auto dtype = [](const char* text, Dtype fallback) -> Result<Dtype> {
    if (text == nullptr || *text == '\0') return fallback;
    if (const auto known = purlin::dtype_from_name(text)) return *known;
    return purlin::error(purlin::Code::kInvalid, "purlin_cublaslt_open: unknown dtype '{}'", text);
  };
  PURLIN_ASSIGN(operation.a, dtype(desc.a, Dtype::kBf16));
  PURLIN_ASSIGN(operation.b, dtype(desc.b, operation.a));
  PURLIN_ASSIGN(operation.d, dtype(desc.d, purlin::default_result(operation.a)));
  operation.transpose_a = desc.transpose_a != 0;
  operation.transpose_b = desc.transpose_b != 0;
  operation.batched = desc.batched != 0;
  operation.compute = text_or_empty(desc.compute);
  if (operation.compute.empty()) operation.compute = purlin::default_compute(operation.a);
  operation.epilogue = text_or_empty(desc.epilogue);
  if (operation.epilogue.empty()) operation.epilogue = "none";
  operation.workspace_bytes = static_cast<std::int64_t>(desc.workspace_bytes);
  PURLIN_TRY(operation.check());
  return operation;
}

}  // namespace

purlin_status purlin_cublaslt_open(purlin_cache* cache, const purlin_cublaslt_desc* desc,
                                   purlin_cublaslt** product) {
  if (product != nullptr) *product = nullptr;
  if (cache == nullptr || desc == nullptr || product == nullptr)
    return fail(PURLIN_INVALID, "purlin_cublaslt_open: an argument is NULL");
  if (!PURLIN_HAS(desc, purlin_cublaslt_desc, flags))
    return fail(PURLIN_INVALID,
                "purlin_cublaslt_open: set the desc to PURLIN_CUBLASLT_DESC_INIT first");
  const purlin_device* device = desc->device;
  if (device == nullptr || !PURLIN_HAS(device, purlin_device, driver) ||
      device->backend == nullptr || device->arch == nullptr)
    return fail(PURLIN_INVALID,
                "purlin_cublaslt_open: the device must state its backend and arch; "
                "purlin_cache_device fills them in");
  return guarded([&]() -> purlin_status {
    const Result<LibraryOperation> operation = operation_of(*desc);
    if (!operation.is_ok()) return fail(operation.status());
    auto app_context = purlin::gpu::join_library(operation->library, desc->handle);
    if (!app_context.is_ok()) return fail(app_context.status());
    LibraryProduct::Setup setup;
    setup.operation = *operation;
    setup.device.backend = device->backend;
    setup.device.arch = device->arch;
    setup.device.device = text_or_empty(device->model);
    setup.device.driver = text_or_empty(device->driver);
    setup.device.policy = text_or_empty(desc->policy);
    setup.any_driver =
        cache->session->settings().serve_stale.value_or((desc->flags & PURLIN_ALLOW_STALE) != 0);
    *product =
        new purlin_cublaslt{{cache->session, std::move(app_context).value(), std::move(setup)}};
    return PURLIN_OK;
  });
}

void purlin_cublaslt_close(purlin_cublaslt* product) { delete product; }

purlin_outcome purlin_cublaslt_algo(purlin_cublaslt* product, const int64_t* extents, size_t count,
                                    void* const descriptors[5], void* algo, size_t algo_bytes,
                                    size_t* workspace_bytes) {
  purlin_outcome outcome = PURLIN_MISS;
  static_cast<void>(guarded([&]() -> purlin_status {
    if (product == nullptr || extents == nullptr || algo == nullptr)
      return fail(PURLIN_INVALID, "purlin_cublaslt_algo: an argument is NULL");
    if (count != product->product.dimensions())
      return fail(PURLIN_INVALID, "purlin_cublaslt_algo: wrong number of extents");
    if (algo_bytes != product->product.algorithm_bytes())
      return fail(PURLIN_INVALID, "purlin_cublaslt_algo: algo_bytes is not the library's");
    purlin::gpu::LibraryDescriptors given;
    if (descriptors != nullptr)
      given = {descriptors[0], descriptors[1], descriptors[2], descriptors[3], descriptors[4]};
    const LibraryProduct::Found found =
        product->product.algorithm(extents, descriptors == nullptr ? nullptr : &given, algo);
    outcome = purlin::runtime::outcome_of(found.outcome);
    if (workspace_bytes != nullptr && outcome != PURLIN_MISS)
      *workspace_bytes = found.workspace_bytes;
    return found.refused.is_ok() ? PURLIN_OK : fail(found.refused);
  }));
  return outcome;
}

purlin_status purlin_cublaslt_matmul(purlin_cublaslt* product, const purlin_cublaslt_launch* launch,
                                     purlin_outcome* outcome) {
  if (outcome != nullptr) *outcome = PURLIN_MISS;
  if (product == nullptr || launch == nullptr)
    return fail(PURLIN_INVALID, "purlin_cublaslt_matmul: an argument is NULL");
  if (!PURLIN_HAS(launch, purlin_cublaslt_launch, fallback))
    return fail(PURLIN_INVALID,
                "purlin_cublaslt_matmul: set the launch to PURLIN_CUBLASLT_LAUNCH_INIT first");
  if (launch->extents == nullptr || launch->extent_count != product->product.dimensions())
    return fail(PURLIN_INVALID, "purlin_cublaslt_matmul: wrong number of extents");
  return guarded([&]() -> purlin_status {
    using Fallback = LibraryProduct::Fallback;
    const Fallback fallback =
        launch->fallback == PURLIN_CUBLASLT_HEURISTIC        ? Fallback::kAlwaysHeuristic
        : launch->fallback == PURLIN_CUBLASLT_ELSE_HEURISTIC ? Fallback::kHeuristic
                                                             : Fallback::kNone;
    purlin::cache::Outcome found = purlin::cache::Outcome::kMiss;
    const auto plan = product->product.plan(launch->extents, fallback, &found);
    if (!plan.is_ok()) return fail(plan.status());
    if (*plan == nullptr) return PURLIN_OK;
    const purlin::gpu::LibraryPointers pointers{
        launch->a, launch->b, launch->bias, launch->d, launch->workspace, launch->workspace_bytes};
    const purlin::Status launched = (*plan)->launch(pointers, launch->stream);
    if (!launched.is_ok()) return fail(launched);
    if (outcome != nullptr) *outcome = purlin::runtime::outcome_of(found);
    return PURLIN_OK;
  });
}
