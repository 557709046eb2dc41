// SPDX-License-Identifier: Apache-2.0
#include "measure/ceilings/benchmarks.h"

#include <fmt/format.h>

namespace purlin::measure {
namespace {

// Sums are kept by a comparison that never holds, so that no compiler drops what made them.
constexpr const char* kOpenClMemory = R"(
// A GPU's neighbours read neighbouring elements; a CPU's work-item has its own range of elements.
#ifdef STRETCHES
#define EACH(i, n)                                                              \
  for (ulong i = get_global_id(0) * (n) / get_global_size(0),                   \
             end = (get_global_id(0) + 1) * (n) / get_global_size(0);           \
       i < end; ++i)
#else
#define EACH(i, n) for (ulong i = get_global_id(0); i < (n); i += get_global_size(0))
#endif
__kernel void read_all(__global const float4* a, __global float4* b, __global float4* c, ulong n,
                       int passes) {
#ifdef STRETCHES
  // Four sums side by side: one would wait for its own addition.
  __global const float16* wide = (__global const float16*)a;
  float16 s0 = (float16)(0.0f), s1 = s0, s2 = s0, s3 = s0;
  for (int pass = 0; pass < passes; ++pass)
    EACH(i, n / 16) {
      s0 += wide[4 * i];
      s1 += wide[4 * i + 1];
      s2 += wide[4 * i + 2];
      s3 += wide[4 * i + 3];
    }
  s0 += s1 + s2 + s3;
  const float4 sum = s0.s0123 + s0.s4567 + s0.s89ab + s0.scdef;
#else
  float4 sum = (float4)(0.0f);
  for (int pass = 0; pass < passes; ++pass) EACH(i, n) sum += a[i];
#endif
  if (sum.x + sum.y + sum.z + sum.w == 1234.5678f) b[0] = sum;
}
__kernel void write_all(__global float4* a, __global float4* b, __global float4* c, ulong n,
                        int passes) {
  EACH(i, n) a[i] = (float4)(2.0f);
}
__kernel void copy_all(__global const float4* a, __global float4* b, __global float4* c, ulong n,
                       int passes) {
  EACH(i, n) b[i] = a[i];
}
__kernel void triad(__global float4* a, __global const float4* b, __global const float4* c,
                    ulong n, int passes) {
  EACH(i, n) a[i] = b[i] + 3.0f * c[i];
}
)";

// CHAINS independent chains hide the latency of each, WIDTH lanes each where a work-item is a lane.
constexpr const char* kOpenClFma = R"(
#ifdef NEED_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
__kernel void fma_chains(__global SCALAR* sink, int iterations) {
  VECTOR x[CHAINS];
  const VECTOR b = (VECTOR)((SCALAR)0.999f), c = (VECTOR)((SCALAR)0.001f);
  for (int j = 0; j < CHAINS; ++j) x[j] = (VECTOR)((SCALAR)(get_global_id(0) + j));
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int u = 0; u < 4; ++u)
#pragma unroll
      for (int j = 0; j < CHAINS; ++j) x[j] = fma(x[j], b, c);
  }
  VECTOR sum = x[0];
  for (int j = 1; j < CHAINS; ++j) sum += x[j];
  if (sum.s0 == (SCALAR)1234.5678f) sink[0] = sum.s1;
}
)";

CeilingBenchmark memory(const char* ceiling, const char* method, CeilingWork work,
                        const char* entry, bool cpu) {
  CeilingBenchmark out{ceiling, method, work, kOpenClMemory, entry, {}, cpu ? 1 : 256, 0, {}};
  if (cpu) out.options = {"-DSTRETCHES"};
  out.blocks_per_unit = cpu ? std::vector<int>{1, 8} : std::vector<int>{8, 32};
  return out;
}

CeilingBenchmark fma_chains(const char* scalar, const char* ceiling, int width, bool cpu) {
  constexpr int kFmaChains = 8;
  CeilingBenchmark out;
  out.ceiling = ceiling;
  out.method = fmt::format("fma, {} chains of {} lanes", kFmaChains, width);
  out.source = kOpenClFma;
  out.entry = "fma_chains";
  out.options = {fmt::format("-DSCALAR={}", scalar), fmt::format("-DVECTOR={}{}", scalar, width),
                 fmt::format("-DCHAINS={}", kFmaChains)};
  if (std::string_view(scalar) == "double") out.options.push_back("-DNEED_FP64");
  out.block = cpu ? 16 : 256;
  out.flops = 2.0 * kFmaChains * 4 * width * out.block;
  out.blocks_per_unit = cpu ? std::vector<int>{8} : std::vector<int>{4, 8};
  return out;
}

}  // namespace

std::vector<CeilingBenchmark> opencl_ceiling_benchmarks(bool cpu) {
  return {memory("dram", "read", CeilingWork::kRead, "read_all", cpu),
          memory("dram", "write", CeilingWork::kWrite, "write_all", cpu),
          memory("dram", "copy", CeilingWork::kCopy, "copy_all", cpu),
          memory("dram", "triad", CeilingWork::kTriad, "triad", cpu),
          memory("l2", "read", CeilingWork::kL2Read, "read_all", cpu),
          // A CPU's work-item has its own vector registers.
          fma_chains("float", "f32", cpu ? 16 : 2, cpu),
          fma_chains("double", "f64", cpu ? 8 : 2, cpu)};
}

std::vector<CeilingBenchmark> ceiling_benchmarks(const DeviceInfo& device,
                                                 std::string_view language) {
  if (language == "opencl") return opencl_ceiling_benchmarks(device.kind == "cpu");
  if (language != "cuda" || device.arch.substr(0, 3) != "sm_") return {};
  int arch = 0;
  for (const char c : device.arch.substr(3)) {
    if (c < '0' || c > '9' || arch > 1000) break;
    arch = arch * 10 + (c - '0');
  }
  return cuda_ceiling_benchmarks(arch, true);
}

}  // namespace purlin::measure
