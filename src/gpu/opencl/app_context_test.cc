// SPDX-License-Identifier: Apache-2.0
// AppContext of OpenCL on PoCL: the program's context and queues, and shadows that change nothing.
#include "gpu/app_context.h"

#include "gpu/opencl/facts.h"
#include "gpu/opencl/functions.h"

#include <gtest/gtest.h>

namespace purlin::gpu {
namespace {

constexpr char kSource[] =
    "kernel void add(global const float* x, global float* out, int by) {\n"
    "  const size_t i = get_global_id(0);\n  out[i] = x[i] + (float)(by * STEP);\n}\n";

class OpenClAppContextTest : public testing::Test {
 protected:
  static constexpr std::size_t kCount = 64;
  void SetUp() override {
    auto loaded = load_opencl();
    ASSERT_TRUE(loaded.is_ok()) << "install pocl-opencl-icd: " << loaded.status().message();
    cl = *loaded;
    const auto ids = list_opencl_devices(cl);
    ASSERT_TRUE(ids.is_ok()) << "install pocl-opencl-icd: " << ids.status().message();
    cl_int code = CL_SUCCESS;
    cl_device_id device = ids->front().device;
    context = {cl.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code),
               cl.clReleaseContext};
    ASSERT_EQ(code, CL_SUCCESS);
    queue = {cl.clCreateCommandQueue(context.get(), device, 0, &code), cl.clReleaseCommandQueue};
    ASSERT_EQ(code, CL_SUCCESS);
    const std::vector<float> ones(kCount, 1);
    x = buffer();
    out = buffer();
    ASSERT_EQ(cl.clEnqueueWriteBuffer(queue.get(), x.get(), CL_TRUE, 0, sizeof(float) * kCount,
                                      ones.data(), 0, nullptr, nullptr),
              CL_SUCCESS);
    auto opened = open_opencl_app_context(context.get(), nullptr);
    ASSERT_TRUE(opened.is_ok()) << opened.status().message();
    app_context = std::move(*opened);
  }

  ClOwned<cl_mem> buffer() {
    cl_int code = CL_SUCCESS;
    return {
        cl.clCreateBuffer(context.get(), CL_MEM_READ_WRITE, sizeof(float) * kCount, nullptr, &code),
        cl.clReleaseMemObject};
  }
  std::unique_ptr<AppKernel> kernel(std::int64_t step) {
    CompileRequest request;
    request.name = "add.cl";
    request.source = kSource;
    request.entry = "add";
    request.config.set("STEP", step);
    return app_context->load(app_context->compile(request).value(), {0, 0, 4}).value();
  }
  float first_of(cl_mem memory) {
    float value = -1;
    EXPECT_EQ(cl.clEnqueueReadBuffer(queue.get(), memory, CL_TRUE, 0, sizeof value, &value, 0,
                                     nullptr, nullptr),
              CL_SUCCESS);
    return value;
  }

  OpenClFunctions cl;
  ClOwned<cl_context> context;
  ClOwned<cl_command_queue> queue;
  ClOwned<cl_mem> x, out;
  std::unique_ptr<AppContext> app_context;
  LaunchShape shape = [] {
    LaunchShape s;
    s.grid = {kCount / 16, 1, 1};
    s.block = {16, 1, 1};
    return s;
  }();
};

TEST_F(OpenClAppContextTest, LaunchesOnTheProgramsQueueWithItsArguments) {
  const auto one = kernel(1);
  ASSERT_TRUE(app_context->admit(*one, shape).is_ok());
  cl_mem a = x.get(), b = out.get();
  int by = 5;
  void* values[] = {&a, &b, &by};
  void* event = nullptr;
  AppLaunch launch{queue.get(), values, 3};
  launch.event = &event;
  ASSERT_EQ(app_context->launch({one.get(), &shape}, launch), CL_SUCCESS);
  ASSERT_NE(event, nullptr);
  cl.clReleaseEvent(static_cast<cl_event>(event));
  EXPECT_EQ(first_of(out.get()), 6);
}

TEST_F(OpenClAppContextTest, TheLiveLaunchComesLastAndTheOthersAreTimed) {
  const auto live = kernel(1), rival = kernel(100);
  cl_mem a = x.get(), b = out.get();
  int by = 2;
  void* values[] = {&a, &b, &by};
  for (const bool live_first : {true, false}) {
    std::unique_ptr<AppTiming> timing;
    const AppWork l{live.get(), &shape}, r{rival.get(), &shape};
    ASSERT_EQ(app_context->launch_shadowed(live_first ? std::array{l, r} : std::array{r, l}, l,
                                           {queue.get(), values, 3}, timing),
              CL_SUCCESS);
    EXPECT_EQ(first_of(out.get()), 3);
    ASSERT_NE(timing, nullptr);
    const auto ms = timing->poll();  // the read waited for the live launch, which waited for them
    ASSERT_TRUE(ms.has_value());
    EXPECT_GT((*ms)[0], 0);
    EXPECT_GT((*ms)[1], 0);
  }
}

TEST_F(OpenClAppContextTest, KnowsWhichBuffersShareMemory) {
  const cl_buffer_region region{128, 64};
  cl_int code = CL_SUCCESS;
  const ClOwned<cl_mem> part(cl.clCreateSubBuffer(x.get(), CL_MEM_READ_WRITE,
                                                  CL_BUFFER_CREATE_TYPE_REGION, &region, &code),
                             cl.clReleaseMemObject);
  ASSERT_EQ(code, CL_SUCCESS);
  cl_mem whole = x.get(), other = out.get(), window = part.get();
  EXPECT_TRUE(app_context->may_overlap(&whole, 256, &whole, 256));
  EXPECT_TRUE(app_context->may_overlap(&whole, 256, &window, 64));
  EXPECT_FALSE(app_context->may_overlap(&whole, 256, &other, 256));
}

TEST_F(OpenClAppContextTest, RefusesWhatCannotBe) {
  CompileRequest request;
  request.name = "add.cl";
  request.source = kSource;
  request.entry = "add";
  request.config.set("STEP", std::int64_t{1});
  const auto wrong = app_context->load(app_context->compile(request).value(), {0, 0});
  EXPECT_EQ(wrong.status().message(), "the kernel 'add' takes 3 arguments, its spec has 2");
  const auto one = kernel(1);
  LaunchShape huge = shape;
  huge.block = {1u << 20, 1, 1};
  EXPECT_EQ(app_context->admit(*one, huge).code(), Code::kInvalid);
  EXPECT_EQ(open_opencl_app_context(nullptr, nullptr).status().code(), Code::kInvalid);
  int by = 1;
  void* none = nullptr;
  void* values[] = {&none, &none, &by};
  LaunchShape odd = shape;
  odd.block = {1u << 20, 1, 1};
  EXPECT_NE(app_context->launch({one.get(), &odd}, {queue.get(), values, 3}), CL_SUCCESS);
}

}  // namespace
}  // namespace purlin::gpu
