// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/activity/launch_calls.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>

namespace purlin::profile::capture::cuda {
namespace {

struct Entry {
  CUpti_ActivityKind api;
  CUpti_CallbackId id;
  LaunchCall call;
};

#define PURLIN_RUNTIME(id, name, kind)                                                   \
  {                                                                                      \
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_##id, { name, CallKind::kind } \
  }
#define PURLIN_DRIVER(id, name, kind)                                                  \
  {                                                                                    \
    CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_##id, { name, CallKind::kind } \
  }

constexpr Entry kCalls[] = {
    PURLIN_RUNTIME(cudaLaunchKernel_v7000, "cudaLaunchKernel", kLaunch),
    PURLIN_RUNTIME(cudaLaunchKernel_ptsz_v7000, "cudaLaunchKernel", kLaunch),
    PURLIN_RUNTIME(cudaLaunchKernelExC_v11060, "cudaLaunchKernelExC", kLaunch),
    PURLIN_RUNTIME(cudaLaunchKernelExC_ptsz_v11060, "cudaLaunchKernelExC", kLaunch),
    PURLIN_RUNTIME(cudaLaunchCooperativeKernel_v9000, "cudaLaunchCooperativeKernel", kLaunch),
    PURLIN_RUNTIME(cudaLaunchCooperativeKernel_ptsz_v9000, "cudaLaunchCooperativeKernel", kLaunch),
    PURLIN_RUNTIME(cudaGraphLaunch_v10000, "cudaGraphLaunch", kGraphLaunch),
    PURLIN_RUNTIME(cudaGraphLaunch_ptsz_v10000, "cudaGraphLaunch", kGraphLaunch),
    PURLIN_DRIVER(cuLaunchKernel, "cuLaunchKernel", kLaunch),
    PURLIN_DRIVER(cuLaunchKernel_ptsz, "cuLaunchKernel", kLaunch),
    PURLIN_DRIVER(cuLaunchKernelEx, "cuLaunchKernelEx", kLaunch),
    PURLIN_DRIVER(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", kLaunch),
    PURLIN_DRIVER(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", kLaunch),
    PURLIN_DRIVER(cuLaunchCooperativeKernel_ptsz, "cuLaunchCooperativeKernel", kLaunch),
    PURLIN_DRIVER(cuGraphLaunch, "cuGraphLaunch", kGraphLaunch),
    PURLIN_DRIVER(cuGraphLaunch_ptsz, "cuGraphLaunch", kGraphLaunch),

    PURLIN_RUNTIME(cudaMemcpy_v3020, "cudaMemcpy", kCopy),
    PURLIN_RUNTIME(cudaMemcpy_ptds_v7000, "cudaMemcpy", kCopy),
    PURLIN_RUNTIME(cudaMemcpyAsync_v3020, "cudaMemcpyAsync", kCopy),
    PURLIN_RUNTIME(cudaMemcpyAsync_ptsz_v7000, "cudaMemcpyAsync", kCopy),
    PURLIN_RUNTIME(cudaMemcpy2D_v3020, "cudaMemcpy2D", kCopy),
    PURLIN_RUNTIME(cudaMemcpy2DAsync_v3020, "cudaMemcpy2DAsync", kCopy),
    PURLIN_RUNTIME(cudaMemcpy2DAsync_ptsz_v7000, "cudaMemcpy2DAsync", kCopy),
    PURLIN_RUNTIME(cudaMemcpy3DAsync_v3020, "cudaMemcpy3DAsync", kCopy),
    PURLIN_RUNTIME(cudaMemcpy3DAsync_ptsz_v7000, "cudaMemcpy3DAsync", kCopy),
    PURLIN_RUNTIME(cudaMemcpyPeer_v4000, "cudaMemcpyPeer", kCopy),
    PURLIN_RUNTIME(cudaMemcpyPeerAsync_v4000, "cudaMemcpyPeerAsync", kCopy),
    PURLIN_RUNTIME(cudaMemcpyToSymbol_v3020, "cudaMemcpyToSymbol", kCopy),
    PURLIN_RUNTIME(cudaMemcpyFromSymbol_v3020, "cudaMemcpyFromSymbol", kCopy),
    PURLIN_RUNTIME(cudaMemset_v3020, "cudaMemset", kCopy),
    PURLIN_RUNTIME(cudaMemset_ptds_v7000, "cudaMemset", kCopy),
    PURLIN_RUNTIME(cudaMemsetAsync_v3020, "cudaMemsetAsync", kCopy),
    PURLIN_RUNTIME(cudaMemsetAsync_ptsz_v7000, "cudaMemsetAsync", kCopy),
    PURLIN_RUNTIME(cudaDeviceSynchronize_v3020, "cudaDeviceSynchronize", kSync),
    PURLIN_RUNTIME(cudaStreamSynchronize_v3020, "cudaStreamSynchronize", kSync),
    PURLIN_RUNTIME(cudaStreamSynchronize_ptsz_v7000, "cudaStreamSynchronize", kSync),
    PURLIN_RUNTIME(cudaEventSynchronize_v3020, "cudaEventSynchronize", kSync),
    PURLIN_DRIVER(cuMemcpyHtoD_v2, "cuMemcpyHtoD", kCopy),
    PURLIN_DRIVER(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", kCopy),
    PURLIN_DRIVER(cuMemcpyDtoH_v2, "cuMemcpyDtoH", kCopy),
    PURLIN_DRIVER(cuMemcpyDtoH_v2_ptds, "cuMemcpyDtoH", kCopy),
    PURLIN_DRIVER(cuMemcpyDtoD_v2, "cuMemcpyDtoD", kCopy),
    PURLIN_DRIVER(cuMemcpyDtoD_v2_ptds, "cuMemcpyDtoD", kCopy),
    PURLIN_DRIVER(cuMemcpy, "cuMemcpy", kCopy),
    PURLIN_DRIVER(cuMemcpy_ptds, "cuMemcpy", kCopy),
    PURLIN_DRIVER(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", kCopy),
    PURLIN_DRIVER(cuMemcpyHtoDAsync_v2_ptsz, "cuMemcpyHtoDAsync", kCopy),
    PURLIN_DRIVER(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", kCopy),
    PURLIN_DRIVER(cuMemcpyDtoHAsync_v2_ptsz, "cuMemcpyDtoHAsync", kCopy),
    PURLIN_DRIVER(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", kCopy),
    PURLIN_DRIVER(cuMemcpyDtoDAsync_v2_ptsz, "cuMemcpyDtoDAsync", kCopy),
    PURLIN_DRIVER(cuMemcpyAsync, "cuMemcpyAsync", kCopy),
    PURLIN_DRIVER(cuMemcpyAsync_ptsz, "cuMemcpyAsync", kCopy),
    PURLIN_DRIVER(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", kCopy),
    PURLIN_DRIVER(cuMemsetD8Async, "cuMemsetD8Async", kCopy),
    PURLIN_DRIVER(cuMemsetD8Async_ptsz, "cuMemsetD8Async", kCopy),
    PURLIN_DRIVER(cuMemsetD32Async, "cuMemsetD32Async", kCopy),
    PURLIN_DRIVER(cuMemsetD32Async_ptsz, "cuMemsetD32Async", kCopy),
    PURLIN_DRIVER(cuCtxSynchronize, "cuCtxSynchronize", kSync),
    PURLIN_DRIVER(cuStreamSynchronize, "cuStreamSynchronize", kSync),
    PURLIN_DRIVER(cuStreamSynchronize_ptsz, "cuStreamSynchronize", kSync),
    PURLIN_DRIVER(cuEventSynchronize, "cuEventSynchronize", kSync),
};
#undef PURLIN_RUNTIME
#undef PURLIN_DRIVER

bool launches(const Entry& entry) {
  return entry.call.kind == CallKind::kLaunch || entry.call.kind == CallKind::kGraphLaunch;
}

constexpr CUpti_ActivityKind kApis[] = {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER};

bool wanted(CUpti_ActivityKind api, CUpti_CallbackId id, CallRecords records) {
  for (const Entry& entry : kCalls)
    if (entry.api == api && entry.id == id)
      return records == CallRecords::kLaunchesCopiesWaits || launches(entry);
  return false;
}

}  // namespace

const LaunchCall* launch_call(CUpti_ActivityKind kind, CUpti_CallbackId id) {
  for (const Entry& entry : kCalls)
    if (entry.api == kind && entry.id == id) return &entry.call;
  return nullptr;
}

void for_each_waiting_call(const std::function<void(CUpti_CallbackId)>& take) {
  for (const Entry& entry : kCalls)
    if (entry.api == CUPTI_ACTIVITY_KIND_DRIVER && entry.call.kind != CallKind::kLaunch)
      take(entry.id);
}

CUptiResult enable_launch_calls(const Cupti& cupti, CallRecords records) {
  for (const CUpti_ActivityKind api : kApis) {
    const CUptiResult result = cupti.enable(api);
    if (result != CUPTI_SUCCESS) return disable_launch_calls(cupti), result;
  }
  if (records == CallRecords::kAll || cupti.enable_runtime_api == nullptr ||
      cupti.enable_driver_api == nullptr)
    return CUPTI_SUCCESS;
  // What the enabled kind turned on, this turns off; the next client's enabling turns it on again.
  for (CUpti_CallbackId id = 1; id < CUPTI_RUNTIME_TRACE_CBID_SIZE; ++id)
    if (!wanted(CUPTI_ACTIVITY_KIND_RUNTIME, id, records)) cupti.enable_runtime_api(id, 0);
  for (CUpti_CallbackId id = 1; id < CUPTI_DRIVER_TRACE_CBID_SIZE; ++id)
    if (!wanted(CUPTI_ACTIVITY_KIND_DRIVER, id, records)) cupti.enable_driver_api(id, 0);
  return CUPTI_SUCCESS;
}

void disable_launch_calls(const Cupti& cupti) {
  for (const CUpti_ActivityKind api : kApis) cupti.disable(api);
}

}  // namespace purlin::profile::capture::cuda
