// SPDX-License-Identifier: Apache-2.0
// A program that tunes its own kernel while it works: each call of blur() runs the next candidate,
// checks its output and falls back to the best one where it is wrong. When the budget is spent, the
// winner goes to the config cache, and the next start finds it there.
//
//   c++ -std=c++17 self_tuning_opencl.cpp -lpurlin -lOpenCL -o self_tuning && ./self_tuning 400
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <purlin/tuner.hpp>
#include <string>
#include <vector>

namespace {

// A moving average; SPAN neighbouring outputs per work-item share their inputs. The configs with
// SKEW are wrong on purpose: a program's own bug in one variant.
const char* const kSource = R"(
kernel void blur(global const float* in, global float* out, int n) {
  int first = get_global_id(0) * SPAN;
  float sum = 0;
  for (int k = -RADIUS; k <= RADIUS; ++k) sum += in[clamp(first + k, 0, n - 1)];
  for (int i = 0; i < SPAN && first + i < n; ++i) {
    out[first + i] = sum / (2 * RADIUS + 1) + SKEW;
    sum += in[clamp(first + i + 1 + RADIUS, 0, n - 1)] - in[clamp(first + i - RADIUS, 0, n - 1)];
  }
})";
constexpr int kCount = 1 << 16, kRadius = 16;

void check(cl_int status, const char* what) {
  if (status != CL_SUCCESS)
    throw std::runtime_error(std::string(what) + " failed: " + std::to_string(status));
}

class Blur {
 public:
  Blur() {
    cl_platform_id platform = nullptr;
    cl_int status = CL_SUCCESS;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), "clGetDeviceIDs");
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
    check(status, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE, &status);
    check(status, "clCreateCommandQueue");
    std::vector<float> input(kCount);
    for (int i = 0; i < kCount; ++i)
      input[static_cast<std::size_t>(i)] = static_cast<float>(i % 97);
    in_ = clCreateBuffer(context_, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, kCount * 4,
                         input.data(), &status);
    check(status, "clCreateBuffer");
    out_ = clCreateBuffer(context_, CL_MEM_WRITE_ONLY, kCount * 4, nullptr, &status);
    check(status, "clCreateBuffer");
    expected_.resize(kCount);
    for (int i = 0; i < kCount; ++i) {
      double sum = 0;
      for (int k = -kRadius; k <= kRadius; ++k)
        sum += input[static_cast<std::size_t>(std::min(std::max(i + k, 0), kCount - 1))];
      expected_[static_cast<std::size_t>(i)] = static_cast<float>(sum / (2 * kRadius + 1));
    }
  }

  // Milliseconds by the device's clock.
  double run(const purlin::TuningConfig& config) {
    const cl_kernel kernel = compiled(config.options());
    const std::size_t span = static_cast<std::size_t>(config.integer("SPAN", 1));
    const std::size_t group = static_cast<std::size_t>(config.integer("GROUP", 64));
    const std::size_t items = (kCount + span - 1) / span;
    const std::size_t global = (items + group - 1) / group * group;
    const cl_int n = kCount;
    check(clSetKernelArg(kernel, 0, sizeof in_, &in_), "clSetKernelArg");
    check(clSetKernelArg(kernel, 1, sizeof out_, &out_), "clSetKernelArg");
    check(clSetKernelArg(kernel, 2, sizeof n, &n), "clSetKernelArg");
    cl_event done = nullptr;
    const cl_int status =
        clEnqueueNDRangeKernel(queue_, kernel, 1, nullptr, &global, &group, 0, nullptr, &done);
    if (status != CL_SUCCESS)
      throw purlin::Rejected("the driver refused the launch: " + std::to_string(status));
    check(clWaitForEvents(1, &done), "clWaitForEvents");
    cl_ulong start = 0, end = 0;
    check(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_START, 8, &start, nullptr), "times");
    check(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_END, 8, &end, nullptr), "times");
    clReleaseEvent(done);
    return std::max(static_cast<double>(end - start) * 1e-6, 1e-6);
  }

  bool is_right() {
    std::vector<float> output(kCount);
    check(clEnqueueReadBuffer(queue_, out_, CL_TRUE, 0, kCount * 4, output.data(), 0, nullptr,
                              nullptr),
          "clEnqueueReadBuffer");
    for (std::size_t i = 0; i < output.size(); ++i)
      if (!(std::fabs(output[i] - expected_[i]) <= 1e-2F)) return false;
    return true;
  }

 private:
  cl_kernel compiled(const std::string& options) {
    const auto found = kernels_.find(options);
    if (found != kernels_.end()) return found->second;
    cl_int status = CL_SUCCESS;
    const char* source = kSource;
    cl_program program = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
    check(status, "clCreateProgramWithSource");
    const std::string all = options + " -DRADIUS=" + std::to_string(kRadius);
    if (clBuildProgram(program, 1, &device_, all.c_str(), nullptr, nullptr) != CL_SUCCESS)
      throw purlin::Rejected("the compiler refused it", PURLIN_NO_COMPILE);
    const cl_kernel kernel = clCreateKernel(program, "blur", &status);
    check(status, "clCreateKernel");
    return kernels_[options] = kernel;
  }

  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  cl_mem in_ = nullptr, out_ = nullptr;
  std::vector<float> expected_;
  std::map<std::string, cl_kernel> kernels_;
};

}  // namespace

int main(int argc, char** argv) try {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 400;
  Blur blur;
  purlin::Cache cache;
  const purlin_device device = cache.device("opencl:0");
  const purlin::Op op = cache.op("blur", {"N"}, device);
  const purlin::Hit known = op.find(kCount);
  if (known) std::printf("an earlier run found: %s\n", known.options());

  purlin::TunerOptions options;
  options.kernel = "blur";
  options.budget = "12";
  options.finals_rounds = 2;
  purlin::Tuner tuner(options);
  tuner.parameter("SPAN", {1, 4, 16, 64}, 1)
      .parameter("GROUP", {16, 64, 256}, 64)
      .parameter("SKEW", {0, 1}, 0)
      .dimension("N", kCount, "pow2")
      .constraint("SPAN * GROUP <= N");
  tuner.start();
  int wrong = 0;
  bool stored = false;
  for (int call = 0; call < calls; ++call) {
    tuner.call([&](const purlin::TuningConfig& config) { return blur.run(config); },
               [&](const purlin::TuningConfig&) { return blur.is_right(); });
    wrong += blur.is_right() ? 0 : 1;  // the output that the program uses
    if (!tuner.over() || stored) continue;
    stored = true;
    const char* dimensions[] = {"N"};
    purlin_op_desc desc = PURLIN_OP_DESC_INIT;
    desc.op = "blur";
    desc.dimensions = dimensions;
    desc.dimension_count = 1;
    desc.device = &device;
    tuner.store("", desc, true);
    std::printf("call %d: the winner of %d configs is %s: %.1f us, the default took %.1f us\n",
                call, static_cast<int>(tuner.evaluations()), tuner.best().options().c_str(),
                tuner.best_time_ms() * 1e3, tuner.default_time_ms() * 1e3);
  }
  std::printf("%d calls, %d of them with a wrong output\n", calls, wrong);
  return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "self_tuning: %s\n", error.what());
  return 2;
}
