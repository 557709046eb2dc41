// SPDX-License-Identifier: Apache-2.0
// The ceilings' CUDA sources compile with NVRTC for each architecture, without a GPU.
#include "measure/ceilings/benchmarks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#if PURLIN_HAVE_CUDA
#include "gpu/cuda/nvrtc.h"

namespace purlin::measure {
namespace {

class CeilingsCudaCompile : public testing::TestWithParam<int> {};

TEST_P(CeilingsCudaCompile, EveryBenchmark) {
  const auto nvrtc = gpu::Nvrtc::load();
  if (!nvrtc.is_ok()) GTEST_SKIP() << nvrtc.status().message();
  std::set<std::string> ceilings;
  for (const CeilingBenchmark& benchmark : cuda_ceiling_benchmarks(GetParam(), true)) {
    gpu::CompileRequest request;
    request.name = "ceiling.cu";
    request.source = benchmark.source;
    request.entry = benchmark.entry;
    request.options = benchmark.options;
    const auto binary = (*nvrtc)->compile(request, fmt::format("sm_{}", GetParam()));
    ASSERT_TRUE(binary.is_ok()) << benchmark.ceiling << " " << benchmark.method << "\n"
                                << binary.status().message();
    EXPECT_GT(binary->image.size(), 1000u);
    // ptxas says so when it cannot keep products in flight.
    EXPECT_EQ(binary->log.find("serialized"), std::string::npos) << binary->log;
    ceilings.insert(benchmark.ceiling);
  }
  EXPECT_TRUE(ceilings.count("dram") && ceilings.count("l2") && ceilings.count("f32"));
  EXPECT_TRUE(ceilings.count("f16 tensor"));
}

INSTANTIATE_TEST_SUITE_P(Archs, CeilingsCudaCompile, testing::Values(75, 90, 120));

}  // namespace
}  // namespace purlin::measure
#endif
