// SPDX-License-Identifier: Apache-2.0
#include "measure/ceilings/ceilings.h"

#include "measure/ceilings/benchmarks.h"
#include "measure/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

namespace purlin::measure {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
constexpr double kTargetMs = 5;  // of one launch of a compute benchmark
constexpr int kMaxIterations = 1 << 24;

template <class T>
gpu::KernelArgument scalar(T value) {
  gpu::KernelArgument argument;
  argument.scalar.assign(sizeof value, '\0');
  std::memcpy(argument.scalar.data(), &value, sizeof value);
  return argument;
}

gpu::KernelArgument place(gpu::Buffer& buffer) {
  gpu::KernelArgument argument;
  argument.buffer = &buffer;
  argument.bytes = buffer.bytes();
  return argument;
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  Bench(gpu::Device& device, const CeilingOptions& options) : device_(device), options_(options) {
    policy_.budget_s = options.budget_s;
    policy_.min_samples = 5;
    policy_.warmup_launches = 2;
  }

  Status prepare() {
    const DeviceInfo& info = device_.info();
    std::uint64_t bytes = options_.buffer_bytes;
    if (bytes == 0) {
      bytes = std::max(4 * info.l2_bytes, (info.kind == "cpu" ? 64 : 1024) * kMib);
      if (info.memory_bytes > 0) bytes = std::min(bytes, info.memory_bytes / 8);
      if (info.kind == "cpu") bytes = std::min(bytes, 256 * kMib);
    }
    bytes = std::max<std::uint64_t>(bytes / 4096 * 4096, 4096);
    for (auto& buffer : buffers_) {
      PURLIN_ASSIGN(buffer, device_.allocate(bytes));
      PURLIN_TRY(device_.fill(*buffer, 0, 0x3f, bytes));  // each float 0.747
    }
    return Status::ok();
  }

  Result<CeilingMeasurement> run(const CeilingBenchmark& benchmark) {
    CeilingMeasurement out;
    out.ceiling = benchmark.ceiling;
    out.method = benchmark.method;
    gpu::CompileRequest request;
    request.name = "ceiling_" + benchmark.entry;
    request.source = benchmark.source;
    request.entry = benchmark.entry;
    request.options = benchmark.options;
    PURLIN_ASSIGN(const gpu::Binary binary, device_.compile(request));
    PURLIN_ASSIGN(std::unique_ptr<gpu::Kernel> kernel, device_.load(binary));
    std::vector<double> rates;
    for (const int per_unit : benchmark.blocks_per_unit) {
      gpu::Launch launch;
      launch.kernel = kernel.get();
      const int units = std::max(1, device_.info().compute_units);
      launch.shape.grid = {static_cast<std::uint32_t>(units * per_unit), 1, 1};
      launch.shape.block = {static_cast<std::uint32_t>(benchmark.block), 1, 1};
      PURLIN_ASSIGN(const double work, arrange(benchmark, launch));
      PURLIN_ASSIGN(const Timing timing, time_kernel(device_, launch, policy_));
      double best = 0, clock = 0;
      std::vector<double> of_grid;
      for (const Sample& sample : timing.samples) {
        if (sample.ms <= 0) continue;
        const double rate = work / (sample.ms * 1e-3);
        of_grid.push_back(rate);
        if (rate > best) best = rate, clock = sample.sm_clock_mhz;
      }
      if (of_grid.empty()) continue;
      out.samples += static_cast<int>(of_grid.size());
      if (best <= out.best) continue;
      out.best = best;
      out.clock_mhz = clock;
      out.median = median_of(std::move(of_grid));
    }
    if (out.best <= 0) return error(Code::kFailed, "no launch took a measurable time");
    PURLIN_TRY(check(benchmark));
    return out;
  }

 private:
  // Fills in the arguments; the work of one launch, in bytes or FLOPs.
  Result<double> arrange(const CeilingBenchmark& benchmark, gpu::Launch& launch) {
    if (benchmark.work == CeilingWork::kCompute) return arrange_compute(benchmark, launch);
    std::uint64_t bytes = buffers_[0]->bytes();
    int passes = 1;
    if (benchmark.work == CeilingWork::kL2Read) {
      const std::uint64_t l2 = device_.info().l2_bytes;
      if (l2 < 64 * 1024) return error(Code::kUnavailable, "the L2 cache's size is not known");
      // A quarter of it: caches of two halves keep copies of each other's lines.
      bytes = std::min(bytes, l2 / 4 / 4096 * 4096);
      passes = static_cast<int>(std::clamp<std::uint64_t>(1024 * kMib / bytes, 4, 1024));
      if (device_.info().kind == "cpu") passes = std::min(passes, 64);
    }
    const std::uint64_t vectors = bytes / 16;
    launch.arguments = {place(*buffers_[0]), place(*buffers_[1]), place(*buffers_[2]),
                        scalar(vectors), scalar(passes)};
    const double each = static_cast<double>(vectors) * 16;
    switch (benchmark.work) {
      case CeilingWork::kCopy:
        return 2 * each;
      case CeilingWork::kTriad:
        return 3 * each;
      default:
        return each * passes;
    }
  }

  // As many iterations as make a launch long enough to time.
  Result<double> arrange_compute(const CeilingBenchmark& benchmark, gpu::Launch& launch) {
    double iterations = 64;
    for (int attempt = 0; attempt < 4; ++attempt) {
      launch.arguments = {place(*buffers_[0]), scalar(static_cast<int>(iterations))};
      gpu::TimingRequest request;
      request.samples = 2;
      PURLIN_ASSIGN(const std::vector<Sample> samples, device_.time(launch, request));
      const double ms = std::max(1e-4, samples.back().ms);
      if (ms > 0.5 * kTargetMs) break;
      iterations = std::min<double>(kMaxIterations, iterations * std::min(1000.0, kTargetMs / ms));
    }
    launch.arguments = {place(*buffers_[0]), scalar(static_cast<int>(iterations))};
    return benchmark.flops * static_cast<double>(launch.shape.blocks()) *
           static_cast<int>(iterations);
  }

  // Checks that the timed kernel did its work: the last element of its output.
  Status check(const CeilingBenchmark& benchmark) {
    if (!device_.executes()) return Status::ok();
    int written = -1;
    float expected = 0;
    float one = 0;
    std::memset(&one, 0x3f, sizeof one);
    if (benchmark.work == CeilingWork::kWrite) written = 0, expected = 2;
    if (benchmark.work == CeilingWork::kCopy) written = 1, expected = 2;  // after the write of a
    if (benchmark.work == CeilingWork::kTriad) written = 0, expected = 2 + 3 * one;
    if (written < 0) return Status::ok();
    const gpu::Buffer& buffer = *buffers_[static_cast<std::size_t>(written)];
    float last = 0;
    PURLIN_TRY(device_.read(buffer, buffer.bytes() / 16 * 16 - sizeof last, &last, sizeof last));
    if (last != expected)
      return error(Code::kFailed, "'{}' wrote {} where {} was due: its time means nothing",
                   benchmark.method, last, expected);
    return Status::ok();
  }

  gpu::Device& device_;
  const CeilingOptions& options_;
  Policy policy_;
  std::unique_ptr<gpu::Buffer> buffers_[3];
};

bool is_memory(const std::string& ceiling) { return ceiling == "dram" || ceiling == "l2"; }

}  // namespace

Result<MeasuredCeilings> measure_ceilings(gpu::Device& device, const CeilingOptions& options) {
  const std::vector<CeilingBenchmark> benchmarks =
      ceiling_benchmarks(device.info(), device.language());
  if (benchmarks.empty())
    return error(Code::kUnavailable, "{}: no ceilings can be measured on a device of backend '{}'",
                 device.info().id, device.info().backend);
  Bench bench(device, options);
  PURLIN_TRY(bench.prepare().with_context("measuring ceilings"));
  MeasuredCeilings out;
  std::map<std::string, const CeilingMeasurement*> best;
  out.measurements.reserve(benchmarks.size());
  for (const CeilingBenchmark& benchmark : benchmarks) {
    if (options.progress) options.progress(benchmark.ceiling + ", " + benchmark.method);
    Result<CeilingMeasurement> measured = bench.run(benchmark);
    if (!measured.is_ok()) {
      if (measured.status().code() == Code::kFailed && out.measurements.empty())
        return measured.status();
      // A ceiling that a device lacks, such as f64, does not affect the others.
      CeilingMeasurement failed;
      failed.ceiling = benchmark.ceiling;
      failed.method = benchmark.method;
      failed.problem = measured.status().message();
      out.measurements.push_back(std::move(failed));
      continue;
    }
    out.measurements.push_back(std::move(measured).value());
    const CeilingMeasurement& latest = out.measurements.back();
    const CeilingMeasurement*& winner = best[latest.ceiling];
    if (winner == nullptr || latest.best > winner->best) winner = &latest;
  }
  out.ceilings.device = device.info().name;
  for (const CeilingMeasurement& measurement : out.measurements) {
    if (measurement.best <= 0 || best[measurement.ceiling] != &measurement) continue;
    const bool memory = is_memory(measurement.ceiling);
    // DRAM has a separate clock.
    Ceiling ceiling{measurement.ceiling, measurement.best, "measured",
                    memory ? 0 : measurement.clock_mhz, measurement.median};
    if (!memory) {
      out.ceilings.compute.push_back(std::move(ceiling));
    } else if (measurement.ceiling == "dram") {
      out.ceilings.memory.insert(out.ceilings.memory.begin(), std::move(ceiling));
    } else {
      out.ceilings.memory.push_back(std::move(ceiling));
    }
  }
  if (out.ceilings.empty())
    return error(Code::kFailed, "{}: nothing could be measured: {}", device.info().id,
                 out.measurements.front().problem);
  return out;
}

}  // namespace purlin::measure
