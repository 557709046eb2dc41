// SPDX-License-Identifier: Apache-2.0
// The workbench over a real device: OpenCL, on the CPU where there is nothing better.
#include "base/files.h"
#include "gpu/registry.h"
#include "measure/workbench.h"

#include <gtest/gtest.h>

namespace purlin::measure {
namespace {

constexpr const char* kOpenClSpec = R"toml(
schema = "purlin.spec/1"
name = "twice"
op = "elementwise"
[problem]
N = 1000
[kernel]
entry = "twice"
[kernel.opencl]
file = "twice.cl"
[parameters]
MODE = [0, 1, 2, 3, 4, 5, 6, 7]
[launch]
grid = ["ceil_div(N, 64)"]
block = [64]
[[arguments]]
name = "x"
role = "input"
dtype = "f32"
shape = ["N"]
[[arguments]]
name = "sum"
role = "inout"
dtype = "f32"
shape = ["N"]
[[arguments]]
name = "y"
role = "output"
dtype = "f32"
shape = ["N // 10", "10"]
[[arguments]]
name = "minus"
role = "output"
dtype = "i32"
shape = ["N"]
[[arguments]]
name = "n"
role = "scalar"
dtype = "i32"
value = "N"
[reference]
entry = "twice_reference"
[reference.opencl]
file = "twice_reference.cl"
[reference.launch]
grid = ["N"]
block = [1]
)toml";

constexpr const char* kReference = R"cl(
__kernel void twice_reference(__global const float* x, __global float* sum, __global float* y,
                              __global int* minus, int n) {
  const int i = get_global_id(0);
  y[i] = 2 * x[i];
  sum[i] += x[i];
  minus[i] = -1;
}
)cl";

constexpr const char* kKernel = R"cl(
__kernel void twice(__global const float* x, __global float* sum, __global float* y,
                    __global int* minus, int n) {
  const int i = get_global_id(0);
#if MODE == 3
  if (i == 0) y[n + 2] = 1;
#elif MODE == 4
  if (i == 0) y[-3] = 1;
#endif
  if (i >= n) return;
#if MODE == 2
  if (i != 33)
#endif
  y[i] = MODE == 1 && i == 17 ? 5.0f : 2 * x[i];
  sum[i] += x[i];
#if MODE == 5
  minus[i] = flaot(1);
#elif MODE == 6
  if (i != 3)
#endif
  minus[i] = -1;
#if MODE == 7
  if (i == n - 1) ((__global float*)x)[i] = 9;
#endif
}
)cl";

class OpenClWorkbench : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = make_temporary_directory("purlin-opencl").value();
    auto device = gpu::open_device("opencl:0");
    if (!device.is_ok()) GTEST_SKIP() << device.status().message();
    device_ = std::move(device).value();
    ASSERT_TRUE(write_atomic(join_path(directory_, "twice.toml"), kOpenClSpec).is_ok());
    ASSERT_TRUE(write_atomic(join_path(directory_, "twice.cl"), kKernel).is_ok());
    ASSERT_TRUE(write_atomic(join_path(directory_, "twice_reference.cl"), kReference).is_ok());
    auto spec = load_spec(join_path(directory_, "twice.toml"));
    ASSERT_TRUE(spec.is_ok()) << spec.status().message();
    auto bench = Workbench::create(*device_, *spec, spec->problem, {});
    ASSERT_TRUE(bench.is_ok()) << bench.status().message();
    bench_ = std::move(bench).value();
  }
  void TearDown() override { static_cast<void>(remove_tree(directory_)); }

  void expect(std::int64_t mode, EvaluationStatus status, std::string_view message) {
    Config config;
    config.set("MODE", mode);
    Policy policy;
    policy.max_samples = 8;
    const Evaluation evaluation = bench_->evaluate(config, policy);
    EXPECT_EQ(evaluation.status, status) << mode << ": " << evaluation.message;
    EXPECT_NE(evaluation.message.find(message), std::string::npos) << evaluation.message;
    EXPECT_EQ(evaluation.time_ms > 0, status == EvaluationStatus::kOk);
  }

  std::string directory_;
  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<Workbench> bench_;
};

// One test, for a bench takes a while to set up; the right kernel between the others shows that
// none of them leaves a trace.
TEST_F(OpenClWorkbench, AcceptsRightKernelsAndRejectsWrongOnes) {
  expect(0, EvaluationStatus::kOk, "");
  expect(1, EvaluationStatus::kWrong, "output 'y' element 17[1,7] is 5");
  expect(2, EvaluationStatus::kWrong, "output 'y' element 33[3,3] was not written");
  expect(3, EvaluationStatus::kOutOfBounds, "argument 'y', byte 4008 of 4000, 8 past its end");
  expect(4, EvaluationStatus::kOutOfBounds, "argument 'y', byte -9, before its start");
  expect(0, EvaluationStatus::kOk, "");
  expect(5, EvaluationStatus::kCompile, "flaot");
  expect(6, EvaluationStatus::kWrong, "output 'minus' element 3 was not written, expected -1");
  expect(7, EvaluationStatus::kWrong, "input 'x' was changed at element 999");
  expect(0, EvaluationStatus::kOk, "");
}

}  // namespace
}  // namespace purlin::measure
