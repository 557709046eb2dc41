// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/api_calls.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

TEST(ClassifyCall, KnowsEachKindByTheNamesInUse) {
  const auto all = [](CallKind kind, std::initializer_list<const char*> names) {
    for (const char* name : names) EXPECT_EQ(classify_call(name), kind) << name;
  };
  all(CallKind::kLaunch,
      {"cudaLaunchKernel", "cudaLaunchKernelExC_v11060", "cuLaunchKernel", "cuLaunchKernelEx",
       "cudaLaunchCooperativeKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel",
       "hipModuleLaunchKernel", "hipExtLaunchKernel", "cudaLaunch_v3020", "clEnqueueNDRangeKernel",
       "zeCommandListAppendLaunchKernel", "cudaLaunchKernel_ptsz_v7000"});
  all(CallKind::kGraphLaunch, {"cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"});
  all(CallKind::kCopy,
      {"cudaMemcpyAsync", "cudaMemsetAsync", "hipMemcpyWithStream", "cuMemcpyHtoDAsync_v2",
       "cuMemsetD32Async", "zeCommandListAppendMemoryCopy", "hsa_amd_memory_async_copy"});
  all(CallKind::kSync, {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize",
                        "hipDeviceSynchronize", "cuCtxSynchronize", "hsa_signal_wait_scacquire"});
  all(CallKind::kAllocation,
      {"cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaHostAlloc", "hipMalloc", "cuMemAlloc_v2"});
  all(CallKind::kOther,
      {"cudaStreamIsCapturing", "cudaGetDevice", "cudaGraphInstantiate", "cudaGraphAddKernelNode",
       "cudaLaunchHostFunc", "cudaEventRecord", "cudaFuncGetAttributes", "cudaEventQuery",
       "cuStreamQuery", "cudaStreamWaitEvent",
       "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", ""});
}

TEST(ClassifyCopy, KnowsTheDirectionByTheNamesInUse) {
  EXPECT_EQ(classify_copy("Memcpy HtoD (Pageable -> Device)"), "h2d");
  EXPECT_EQ(classify_copy("Memcpy DtoH (Device -> Pinned)"), "d2h");
  EXPECT_EQ(classify_copy("[CUDA memcpy DtoD]"), "d2d");
  EXPECT_EQ(classify_copy("Memcpy PtoP (Device -> Device)"), "p2p");
  EXPECT_EQ(classify_copy("CopyHostToDevice"), "h2d");
  EXPECT_EQ(classify_copy("CopyDeviceToHost"), "d2h");
  EXPECT_EQ(classify_copy("FillBuffer"), "memset");
  EXPECT_EQ(classify_copy("Memset (Device)"), "memset");
  EXPECT_EQ(classify_copy("Memcpy HtoA (Pinned -> Array)"), "h2d");
  EXPECT_EQ(classify_copy("Memcpy Unknown"), "copy");
}

}  // namespace
}  // namespace purlin::profile
