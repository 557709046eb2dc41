// SPDX-License-Identifier: Apache-2.0
// AppContext of CUDA on a fake driver: the driver gets the program's parameters and stream, the
// thread's context stays unchanged, and a shadowed launch ends with the live one.
#include "gpu/cuda/startup.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace purlin::gpu {
namespace {

// Functions of the driver API carry no state; tests run one after the other.
std::vector<std::string> calls;
int depth = 0;  // contexts pushed and not popped
CUresult event_state = CUDA_SUCCESS;
CUresult record_result = CUDA_SUCCESS;
CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
std::vector<std::size_t> parameter_sizes;

CUresult note(const std::string& call) {
  calls.push_back(call);
  return CUDA_SUCCESS;
}
template <class Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

CudaDriver fake_driver() {
  CudaDriver driver;
  driver.cuGetErrorName = [](CUresult, const char** text) { return *text = "E", CUDA_SUCCESS; };
  driver.cuGetErrorString = [](CUresult, const char** text) { return *text = "e", CUDA_SUCCESS; };
  driver.cuCtxPushCurrent_v2 = [](CUcontext) { return ++depth, CUDA_SUCCESS; };
  driver.cuCtxPopCurrent_v2 = [](CUcontext*) { return --depth, CUDA_SUCCESS; };
  driver.cuModuleLoadDataEx = [](CUmodule* module, const void* image, unsigned, CUjit_option*,
                                 void**) {
    // The image's first letter tells the functions apart.
    *module = handle<CUmodule>(static_cast<std::uintptr_t>(*static_cast<const char*>(image)));
    return note("load");
  };
  driver.cuModuleUnload = [](CUmodule) { return note("unload"); };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char*) {
    *function = reinterpret_cast<CUfunction>(module);
    return CUDA_SUCCESS;
  };
  driver.cuFuncLoad = [](CUfunction) { return note("load code"); };
  driver.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction) {
    return *value = 256, CUDA_SUCCESS;
  };
  driver.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int value) {
    return note("allow " + std::to_string(value));
  };
  driver.cuFuncGetParamInfo = [](CUfunction, std::size_t index, std::size_t* offset,
                                 std::size_t* size) {
    if (index >= parameter_sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = 0;
    *size = parameter_sizes[index];
    return CUDA_SUCCESS;
  };
  driver.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    return *status = capture, CUDA_SUCCESS;
  };
  driver.cuEventCreate = [](CUevent* event, unsigned) {
    static std::uintptr_t next = 1;
    return *event = handle<CUevent>(next++), CUDA_SUCCESS;
  };
  driver.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
  driver.cuEventRecord = [](CUevent, CUstream) {
    note("record");
    return record_result;
  };
  driver.cuEventQuery = [](CUevent) { return event_state; };
  driver.cuEventElapsedTime = [](float* ms, CUevent, CUevent) { return *ms = 2, CUDA_SUCCESS; };
  driver.cuLaunchKernel = [](CUfunction function, unsigned grid, unsigned, unsigned, unsigned block,
                             unsigned, unsigned, unsigned shared, CUstream stream, void** values,
                             void**) {
    return note(fmt::format("{} {}x{} {} stream {} value {}",
                            static_cast<char>(reinterpret_cast<std::uintptr_t>(function)), grid,
                            block, shared, reinterpret_cast<std::uintptr_t>(stream),
                            *static_cast<int*>(values[1])));
  };
  return driver;
}

class CudaAppContextTest : public testing::Test {
 protected:
  void SetUp() override {
    calls.clear();
    depth = 0;
    event_state = record_result = CUDA_SUCCESS;
    capture = CU_STREAM_CAPTURE_STATUS_NONE;
    parameter_sizes = {8, 4};
    CudaStartup startup;
    startup.driver = fake_driver();
    DeviceInfo info;
    info.id = "cuda:0";
    app_context = make_cuda_app_context(std::move(startup), handle<CUcontext>(1), info);
    shape.grid = {7, 1, 1};
    shape.block = {64, 1, 1};
  }
  std::unique_ptr<AppKernel> kernel(const char* image) {
    return app_context->load({"entry", image, "", 0}, {0, 4}).value();
  }
  std::unique_ptr<AppContext> app_context;
  LaunchShape shape;
  CUdeviceptr address = 4096;
  int scalar = 42;
  void* values[2] = {&address, &scalar};
  AppLaunch launch{handle<void*>(9), values, 2};
};

TEST_F(CudaAppContextTest, LaunchesWithTheProgramsOwnParametersAndStream) {
  {
    const auto a = kernel("A");
    shape.dynamic_shared_bytes = 64 << 10;
    ASSERT_TRUE(app_context->admit(*a, shape).is_ok());
    ASSERT_TRUE(app_context->admit(*a, shape).is_ok());
    EXPECT_EQ(app_context->launch({a.get(), &shape}, launch), 0);
  }
  EXPECT_EQ(calls, (std::vector<std::string>{"load", "load code", "allow 65536",
                                             "A 7x64 65536 stream 9 value 42", "unload"}));
  EXPECT_EQ(depth, 0);
}

TEST_F(CudaAppContextTest, AShadowedLaunchWarmsUpTimesBothAndEndsWithTheLiveOne) {
  const auto a = kernel("A"), b = kernel("B");
  calls.clear();
  std::unique_ptr<AppTiming> timing;
  const AppWork live{a.get(), &shape}, rival{b.get(), &shape};
  EXPECT_EQ(app_context->launch_shadowed({rival, live}, live, launch, timing), 0);
  const std::string by_a = "A 7x64 0 stream 9 value 42", by_b = "B 7x64 0 stream 9 value 42";
  EXPECT_EQ(calls,
            (std::vector<std::string>{by_b, "record", by_b, "record", by_a, "record", by_a}));
  ASSERT_NE(timing, nullptr);
  event_state = CUDA_ERROR_NOT_READY;
  EXPECT_FALSE(timing->poll().has_value());
  event_state = CUDA_SUCCESS;
  EXPECT_EQ(*timing->poll(), (std::array<double, 2>{2, 2}));
  EXPECT_EQ(depth, 0);
}

TEST_F(CudaAppContextTest, TheLiveLaunchIsMadeEvenIfTheShadowFails) {
  const auto a = kernel("A"), b = kernel("B");
  record_result = CUDA_ERROR_INVALID_VALUE;
  calls.clear();
  std::unique_ptr<AppTiming> timing;
  const AppWork live{a.get(), &shape}, rival{b.get(), &shape};
  EXPECT_EQ(app_context->launch_shadowed({rival, live}, live, launch, timing), 0);
  EXPECT_EQ(timing, nullptr);
  EXPECT_EQ(calls.back(), "A 7x64 0 stream 9 value 42");
  EXPECT_EQ(depth, 0);
}

TEST_F(CudaAppContextTest, RefusesAKernelOfOtherParametersAndBlocksItCannotHave) {
  parameter_sizes = {8, 8};
  EXPECT_EQ(app_context->load({"entry", "A", "", 0}, {0, 4}).status().message(),
            "argument 1 of 'entry' has 8 bytes, 4 in its spec");
  parameter_sizes = {8, 4, 4};
  EXPECT_EQ(app_context->load({"entry", "A", "", 0}, {0, 4}).status().message(),
            "the kernel 'entry' takes 3 arguments, its spec has 2");
  parameter_sizes = {8, 4};
  const auto a = kernel("A");
  shape.block = {512, 1, 1};
  EXPECT_EQ(app_context->admit(*a, shape).code(), Code::kInvalid);
  EXPECT_EQ(depth, 0);
}

TEST_F(CudaAppContextTest, KnowsACapturingStreamAndOverlappingBuffers) {
  EXPECT_FALSE(app_context->capturing(nullptr));
  capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  EXPECT_TRUE(app_context->capturing(nullptr));
  const CUdeviceptr other = address + 100;
  EXPECT_TRUE(app_context->may_overlap(&address, 101, &other, 8));
  EXPECT_FALSE(app_context->may_overlap(&address, 100, &other, 8));
}

}  // namespace
}  // namespace purlin::gpu
