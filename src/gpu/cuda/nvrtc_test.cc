// SPDX-License-Identifier: Apache-2.0
// NVRTC compiles without a GPU, so this runs on each machine with NVRTC. On other machines the
// tests check the error message.
#include "gpu/cuda/nvrtc.h"

#include "gpu/cuda/cubin.h"

#include <gtest/gtest.h>

namespace purlin::gpu {
namespace {

constexpr const char* kNvrtcSource = R"(
#include <cuda_fp16.h>
extern "C" __global__ void scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= FACTOR;
}
namespace deep {
template <class T, int N> __global__ void add(T* x) { x[threadIdx.x] += T(N); }
}
#if WARN
__global__ void idle() { int unused; }
#endif
)";

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Nvrtc::load();
    if (loaded.is_ok()) {
      nvrtc_ = std::move(*loaded);
      return;
    }
    EXPECT_EQ(loaded.status().code(), Code::kUnavailable);
    EXPECT_NE(loaded.status().message().find("PURLIN_NVRTC"), std::string::npos)
        << loaded.status().message();
  }
  static CompileRequest request(const std::string& entry) {
    CompileRequest request;
    request.name = "kernels.cu";
    request.source = kNvrtcSource;
    request.entry = entry;
    request.config.set("FACTOR", 2.0);
    request.config.set("WARN", false);
    return request;
  }
  std::unique_ptr<Nvrtc> nvrtc_;
};

TEST_F(NvrtcTest, CompilesToACubin) {
  if (nvrtc_ == nullptr) return;
  auto binary = nvrtc_->compile(request("scale"), "sm_90");
  ASSERT_TRUE(binary.is_ok()) << binary.status().message();
  EXPECT_EQ(binary->entry, "scale");  // extern "C": as written
  EXPECT_EQ(binary->image.substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_GT(binary->compile_s, 0);
  EXPECT_EQ(nvrtc_->version().rfind("NVRTC ", 0), 0u);
}

TEST_F(NvrtcTest, TheCubinSaysWhatTheKernelTakes) {
  if (nvrtc_ == nullptr) return;
  CompileRequest greedy = request("scale");
  // The stack holds an array with an index that only the launch knows.
  greedy.source = R"(extern "C" __global__ void scale(float* x, int n) {
    __shared__ float tile[64];
    float stack[200];
    for (int i = 0; i < 200; ++i) stack[i] = x[i];
    tile[threadIdx.x] = stack[n];
    __syncthreads();
    x[threadIdx.x] = tile[63 - threadIdx.x];
  })";
  for (const char* arch : {"sm_80", "sm_90", "sm_100"}) {
    auto binary = nvrtc_->compile(greedy, arch);
    ASSERT_TRUE(binary.is_ok()) << binary.status().message();
    const auto resources = cubin_resources(binary->image, binary->entry);
    ASSERT_TRUE(resources);
    EXPECT_GT(resources->registers, 8);
    EXPECT_LE(resources->registers, 255);
    EXPECT_EQ(resources->local_bytes, 800) << arch;
    EXPECT_EQ(resources->static_shared_bytes, 256) << arch;
    EXPECT_FALSE(cubin_resources(binary->image, "other"));
    // A cut image says nothing, and harms nothing.
    for (std::size_t cut = 0; cut < binary->image.size(); cut += 97)
      static_cast<void>(cubin_resources(binary->image.substr(0, cut), "scale"));
  }
  EXPECT_FALSE(
      cubin_resources("\x7f"
                      "ELF",
                      "scale"));
}

TEST_F(NvrtcTest, InstantiatesATemplate) {
  if (nvrtc_ == nullptr) return;
  auto binary = nvrtc_->compile(request("deep::add<double, 3>"), "sm_90");
  ASSERT_TRUE(binary.is_ok()) << binary.status().message();
  EXPECT_EQ(binary->entry.rfind("_ZN4deep3addIdLi3E", 0), 0u) << binary->entry;
  EXPECT_NE(binary->image.find(binary->entry), std::string::npos);
}

TEST_F(NvrtcTest, OptionsMayNameTheArchitecture) {
  if (nvrtc_ == nullptr) return;
  CompileRequest wgmma = request("scale");
  wgmma.source = R"(extern "C" __global__ void scale(float* x, int) {
    asm volatile("wgmma.fence.sync.aligned;"); })";
  EXPECT_EQ(nvrtc_->compile(wgmma, "sm_90").status().code(), Code::kInvalid);
  wgmma.options = {"-arch=sm_90a"};
  auto binary = nvrtc_->compile(wgmma, "sm_90");
  EXPECT_TRUE(binary.is_ok()) << binary.status().message();
  wgmma.options = {"-arch=compute_90a"};
  EXPECT_NE(nvrtc_->compile(wgmma, "sm_90").status().message().find("not compute_XY"),
            std::string::npos);
}

TEST_F(NvrtcTest, ErrorsCarryTheCompilersLog) {
  if (nvrtc_ == nullptr) return;
  CompileRequest broken = request("scale");
  broken.source = "extern \"C\" __global__ void scale(float* x) { x[0] = no_such_thing; }";
  const Status status = nvrtc_->compile(broken, "sm_90").status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("no_such_thing"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("kernels.cu(1)"), std::string::npos) << status.message();
  const Status missing = nvrtc_->compile(request("scalee"), "sm_90").status();
  EXPECT_EQ(missing.code(), Code::kInvalid);
  EXPECT_NE(missing.message().find("scalee"), std::string::npos) << missing.message();
  EXPECT_EQ(nvrtc_->compile(request("scale"), "sm_1").status().code(), Code::kInvalid);
}

TEST_F(NvrtcTest, KeepsWarnings) {
  if (nvrtc_ == nullptr) return;
  CompileRequest warned = request("scale");
  warned.config.set("WARN", true);
  auto binary = nvrtc_->compile(warned, "sm_90");
  ASSERT_TRUE(binary.is_ok()) << binary.status().message();
  EXPECT_NE(binary->log.find("unused"), std::string::npos) << binary->log;
}

}  // namespace
}  // namespace purlin::gpu
