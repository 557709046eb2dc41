// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for the ceilings. Tensor cores are driven by PTX: mma.sync everywhere, and on sm_90
// wgmma too, since mma.sync reaches only about 62 % of what the chip can do. Operands are
// pseudo-random: with zeros a chip draws less power and clocks higher than any real product lets it
// (13 % on an H200).
#include "measure/ceilings/benchmarks.h"

#include <fmt/format.h>

#include <array>

namespace purlin::measure {
namespace {

constexpr const char* kMemory = R"(
typedef unsigned long long u64;
__device__ inline float total(float4 v) { return v.x + v.y + v.z + v.w; }
extern "C" __global__ void __launch_bounds__(512)
read_all(const float4* a, float4* b, float4* c, u64 n, int passes) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (; i + 3 * stride < n; i += 4 * stride) {
    const float4 p = a[i], q = a[i + stride], r = a[i + 2 * stride], s = a[i + 3 * stride];
    sum += total(p) + total(q) + total(r) + total(s);
  }
  for (; i < n; i += stride) sum += total(a[i]);
  if (sum == 1234.5678f) b[0].x = sum;
}
extern "C" __global__ void __launch_bounds__(512)
write_all(float4* a, float4* b, float4* c, u64 n, int passes) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
    a[i] = make_float4(2, 2, 2, 2);
}
extern "C" __global__ void __launch_bounds__(512)
copy_all(const float4* a, float4* b, float4* c, u64 n, int passes) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < n; i += 4 * stride) {
    const float4 p = a[i], q = a[i + stride], r = a[i + 2 * stride], s = a[i + 3 * stride];
    b[i] = p, b[i + stride] = q, b[i + 2 * stride] = r, b[i + 3 * stride] = s;
  }
  for (; i < n; i += stride) b[i] = a[i];
}
__device__ inline float4 axpy(float4 x, float4 y) {
  return make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
}
extern "C" __global__ void __launch_bounds__(512)
triad(float4* a, const float4* b, const float4* c, u64 n, int passes) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  for (; i + stride < n; i += 2 * stride) {
    const float4 p = b[i], q = b[i + stride], r = c[i], s = c[i + stride];
    a[i] = axpy(p, r), a[i + stride] = axpy(q, s);
  }
  for (; i < n; i += stride) a[i] = axpy(b[i], c[i]);
}
// Past the L1 cache (.cg). Each pass starts elsewhere, so that blocks share the buffer.
extern "C" __global__ void __launch_bounds__(512)
l2_read(const float4* a, float4* b, float4* c, u64 n, int passes) {
  const u64 stride = (u64)gridDim.x * blockDim.x;
  float sum = 0;
  for (int pass = 0; pass < passes; ++pass) {
    u64 i = ((u64)blockIdx.x + 7 * pass) % gridDim.x * blockDim.x + threadIdx.x;
#pragma unroll 4
    for (; i < n; i += stride) {
      float4 v;
      asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(a + i));
      sum += total(v);
    }
  }
  if (sum == 1234.5678f) b[0].x = sum;
}
)";

// FMA(x) makes x = x * b + c; CHAINS of them run side by side.
constexpr const char* kFma = R"(
extern "C" __global__ void __launch_bounds__(256) fma_chains(float* sink, int iterations) {
  TYPE x[8];
  const TYPE b = (TYPE)B, c = (TYPE)C;
  for (int j = 0; j < 8; ++j) x[j] = (TYPE)(X0 + threadIdx.x + j);
  for (int i = 0; i < iterations; ++i) {
#pragma unroll
    for (int u = 0; u < 16; ++u)
#pragma unroll
      for (int j = 0; j < 8; ++j) FMA(x[j]);
  }
  TYPE sum = 0;
  for (int j = 0; j < 8; ++j) sum += x[j];
  if (sum == (TYPE)12345) *sink = (float)sum;
}
)";

CeilingBenchmark memory(const char* ceiling, const char* method, CeilingWork work,
                        const char* entry) {
  return {ceiling, method, work, kMemory, entry, {}, 512, 0, {2, 4, 16}};
}

struct Chains {
  const char *ceiling, *type, *fma, *b, *c, *x0;
  double flops;  // of one FMA of one thread
  int arch;
};

constexpr Chains kChains[] = {
    {"f32", "float", "x = __fmaf_rn(x, b, c)", "0.999f", "0.001f", "0", 2, 50},
    {"f64", "double", "x = __fma_rn(x, b, c)", "0.999", "0.001", "0", 2, 60},
    // Two halves in a register: 0.5 and 0.25 of each type.
    {"f16", "unsigned",
     "asm volatile(\"fma.rn.f16x2 %0, %0, %1, %2;\" : \"+r\"(x) : \"r\"(b), \"r\"(c))",
     "0x38003800", "0x34003400", "0x34003400", 4, 60},
    {"bf16", "unsigned",
     "asm volatile(\"fma.rn.bf16x2 %0, %0, %1, %2;\" : \"+r\"(x) : \"r\"(b), \"r\"(c))",
     "0x3f003f00", "0x3e803e80", "0x3e803e80", 4, 80},
};

CeilingBenchmark fma_chains(const Chains& chains) {
  CeilingBenchmark out;
  out.ceiling = chains.ceiling;
  out.method = "fma chains";
  out.source = fmt::format(
      "#define TYPE {}\n#define B {}\n#define C {}\n#define X0 {}\n"
      "#define FMA(x) {}\n{}",
      chains.type, chains.b, chains.c, chains.x0, chains.fma, kFma);
  out.entry = "fma_chains";
  out.flops = chains.flops * 8 * 16 * out.block;
  out.blocks_per_unit = {4, 8};
  return out;
}

// One mma.sync instruction: registers of A, B and C/D, and bits that make an operand a number of
// random sign and mantissa but bounded size.
struct Mma {
  const char *ceiling, *shape, *types;
  int a, b, c;
  char operand, accumulator;  // asm constraints: 'r' or 'd'; 'f', 'r' or 'd'
  double flops;               // of one warp
  unsigned keep, set;
  int from, to;  // architectures
};

constexpr Mma kMma[] = {
    {"f16 tensor", "m8n8k4", "f32.f16.f16.f32", 2, 2, 8, 'r', 'f', 2048, 0x83ff83ff, 0x2c002c00, 70,
     72},
    {"f16 tensor", "m16n8k8", "f32.f16.f16.f32", 2, 1, 4, 'r', 'f', 2048, 0x83ff83ff, 0x2c002c00,
     75, 75},
    {"i8 tensor", "m8n8k16", "s32.s8.s8.s32", 1, 1, 2, 'r', 'r', 2048, 0x0f0f0f0f, 0x01010101, 75,
     75},
    {"f16 tensor", "m16n8k16", "f32.f16.f16.f32", 4, 2, 4, 'r', 'f', 4096, 0x83ff83ff, 0x2c002c00,
     80, 999},
    {"bf16 tensor", "m16n8k16", "f32.bf16.bf16.f32", 4, 2, 4, 'r', 'f', 4096, 0x807f807f,
     0x3c003c00, 80, 999},
    {"tf32 tensor", "m16n8k8", "f32.tf32.tf32.f32", 4, 2, 4, 'r', 'f', 2048, 0x807fe000, 0x3c000000,
     80, 999},
    {"i8 tensor", "m16n8k32", "s32.s8.s8.s32", 4, 2, 4, 'r', 'r', 8192, 0x0f0f0f0f, 0x01010101, 80,
     999},
    {"f8 tensor", "m16n8k32", "f32.e4m3.e4m3.f32", 4, 2, 4, 'r', 'f', 8192, 0x87878787, 0x28282828,
     89, 999},
    {"f64 tensor", "m8n8k4", "f64.f64.f64.f64", 1, 1, 2, 'd', 'd', 512, 0, 0, 80, 80},
    {"f64 tensor", "m16n8k8", "f64.f64.f64.f64", 4, 2, 4, 'd', 'd', 2048, 0, 0, 90, 90},
};

// "%0, %1, …" from `first`, `count` of them.
std::string places(int first, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}%{}", i > 0 ? ", " : "", first + i);
  return out;
}

std::string constraints(const char* how, const std::string& name, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += fmt::format("{}\"{}\"({}[{}])", i > 0 ? ", " : "", how, name, i);
  return out;
}

CeilingBenchmark mma_loop(const Mma& mma) {
  constexpr int kAccumulators = 8;
  const std::string text = fmt::format(
      "mma.sync.aligned.{}.row.col.{} {{{}}}, {{{}}}, {{{}}}, {{{}}};", mma.shape, mma.types,
      places(0, mma.c), places(mma.c, mma.a), places(mma.c + mma.a, mma.b), places(0, mma.c));
  const bool doubles = mma.operand == 'd';
  const char* accumulator = mma.accumulator == 'f'   ? "float"
                            : mma.accumulator == 'd' ? "double"
                                                     : "int";
  CeilingBenchmark out;
  out.ceiling = mma.ceiling;
  out.method = fmt::format("mma.sync {}", mma.shape);
  out.entry = "mma_loop";
  out.source = fmt::format(
      R"(__device__ inline unsigned bits(unsigned x) {{
  x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
  return x;
}}
extern "C" __global__ void __launch_bounds__(256) mma_loop(float* sink, int iterations) {{
  {0} a[{1}], b[{2}];
  {3} d[{4}][{5}];
  for (int i = 0; i < {1}; ++i) a[i] = {6};
  for (int i = 0; i < {2}; ++i) b[i] = {7};
  for (int j = 0; j < {4}; ++j)
    for (int i = 0; i < {5}; ++i) d[j][i] = 0;
  for (int i = 0; i < iterations; ++i) {{
#pragma unroll
    for (int j = 0; j < {4}; ++j)
      asm volatile("{8}" : {9} : {10}, {11});
  }}
  {3} sum = 0;
  for (int j = 0; j < {4}; ++j)
    for (int i = 0; i < {5}; ++i) sum += d[j][i];
  if (sum == ({3})12345) *sink = (float)sum;
}}
)",
      doubles ? "double" : "unsigned", mma.a, mma.b, accumulator, kAccumulators, mma.c,
      doubles ? "1e-3 * (int)(bits(threadIdx.x * 8 + i) % 2001 - 1000)"
              : fmt::format("(bits(threadIdx.x * 8 + i) & {:#x}u) | {:#x}u", mma.keep, mma.set),
      doubles
          ? "1e-3 * (int)(bits(threadIdx.x * 8 + i + 4096) % 2001 - 1000)"
          : fmt::format("(bits(threadIdx.x * 8 + i + 4096) & {:#x}u) | {:#x}u", mma.keep, mma.set),
      text, constraints(fmt::format("+{}", mma.accumulator).c_str(), "d[j]", mma.c),
      constraints(std::string(1, mma.operand).c_str(), "a", mma.a),
      constraints(std::string(1, mma.operand).c_str(), "b", mma.b));
  out.flops = mma.flops * kAccumulators * (out.block / 32);
  out.blocks_per_unit = {1, 2, 4};
  return out;
}

// Hopper's asynchronous product of a warpgroup, both operands in shared memory, 128-byte swizzle.
struct Wgmma {
  const char *ceiling, *shape, *types;
  const char* scales;  // immediate operands after scale-d
  char accumulator;    // 'f' or 'r'
  double flops;        // of one warpgroup
  unsigned keep, set;
};

constexpr Wgmma kWgmma[] = {
    {"f16 tensor", "m64n256k16", "f32.f16.f16", ", 1, 1, 0, 0", 'f', 2.0 * 64 * 256 * 16,
     0x83ff83ff, 0x2c002c00},
    {"bf16 tensor", "m64n256k16", "f32.bf16.bf16", ", 1, 1, 0, 0", 'f', 2.0 * 64 * 256 * 16,
     0x807f807f, 0x3c003c00},
    {"tf32 tensor", "m64n256k8", "f32.tf32.tf32", ", 1, 1", 'f', 2.0 * 64 * 256 * 8, 0x807fe000,
     0x3c000000},
    {"f8 tensor", "m64n256k32", "f32.e4m3.e4m3", ", 1, 1", 'f', 2.0 * 64 * 256 * 32, 0x87878787,
     0x28282828},
    {"i8 tensor", "m64n256k32", "s32.s8.s8", "", 'r', 2.0 * 64 * 256 * 32, 0x0f0f0f0f, 0x01010101},
};

CeilingBenchmark wgmma_loop(const Wgmma& wgmma) {
  constexpr int kRegisters = 128, kSteps = 4;
  const bool floats = wgmma.accumulator == 'f';
  std::string d, zero;
  for (int i = 0; i < kRegisters; ++i) {
    d += fmt::format("{}d{}", i > 0 ? "," : "", i);
    zero += fmt::format("mov.b32 d{}, 0;\\n", i);
  }
  // Rows of 128 bytes hold four steps along K, 32 bytes each: 2 in the descriptor's units of 16.
  std::string steps;
  for (int step = 0; step < kSteps; ++step)
    steps += fmt::format(
        "add.s64 a, %1, {0};\\n"
        "add.s64 b, %2, {0};\\n"
        "wgmma.mma_async.sync.aligned.{1}.{2} {{{3}}}, a, b, p{4};\\n",
        2 * step, wgmma.shape, wgmma.types, d, wgmma.scales);
  CeilingBenchmark out;
  out.ceiling = wgmma.ceiling;
  out.method = fmt::format("wgmma {}", wgmma.shape);
  out.entry = "wgmma_loop";
  out.options = {"-arch=sm_90a"};
  out.source = fmt::format(
      R"(typedef unsigned long long u64;
__device__ inline unsigned bits(unsigned x) {{
  x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
  return x;
}}
// Start address, leading and stride byte offsets (8 rows of 128 bytes), swizzle of 128 bytes.
__device__ inline u64 descriptor(const void* shared) {{
  unsigned address;
  asm("{{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }}" : "=r"(address) : "l"(shared));
  return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}}
extern "C" __global__ void __launch_bounds__(256) wgmma_loop(float* sink, int iterations) {{
  __shared__ __align__(1024) unsigned a[2][64 * 32];
  __shared__ __align__(1024) unsigned b[256 * 32];
  for (int i = threadIdx.x; i < 2 * 64 * 32; i += 256) a[i / 2048][i % 2048] = (bits(i) & {0:#x}u) | {1:#x}u;
  for (int i = threadIdx.x; i < 256 * 32; i += 256) b[i] = (bits(i + 77777) & {0:#x}u) | {1:#x}u;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  {2} result = 0;
  asm volatile("{{\n"
    ".reg .pred p, more;\n"
    ".reg .b32 d<{3}>;\n"
    ".reg .b64 a, b;\n"
    ".reg .s32 i;\n"
    "{4}"
    "setp.ne.b32 p, 1, 0;\n"
    "mov.s32 i, %3;\n"
    "wgmma.fence.sync.aligned;\n"
    "LOOP:\n"
    "{5}"
    "wgmma.commit_group.sync.aligned;\n"
    "wgmma.wait_group.sync.aligned 1;\n"
    "sub.s32 i, i, 1;\n"
    "setp.gt.s32 more, i, 0;\n"
    "@more bra LOOP;\n"
    "wgmma.wait_group.sync.aligned 0;\n"
    "mov.b32 %0, d0;\n"
    "}}" : "={6}"(result) : "l"(descriptor(a[threadIdx.x / 128])), "l"(descriptor(b)), "r"(iterations) : "memory");
  if (result == ({2})12345) *sink = (float)result;
}}
)",
      wgmma.keep, wgmma.set, floats ? "float" : "int", kRegisters, zero, steps, wgmma.accumulator);
  out.flops = wgmma.flops * kSteps * 2;
  out.blocks_per_unit = {1};
  return out;
}

}  // namespace

std::vector<CeilingBenchmark> cuda_ceiling_benchmarks(int arch, bool arch_specific) {
  std::vector<CeilingBenchmark> out = {memory("dram", "read", CeilingWork::kRead, "read_all"),
                                       memory("dram", "write", CeilingWork::kWrite, "write_all"),
                                       memory("dram", "copy", CeilingWork::kCopy, "copy_all"),
                                       memory("dram", "triad", CeilingWork::kTriad, "triad"),
                                       memory("l2", "read", CeilingWork::kL2Read, "l2_read")};
  for (const Chains& chains : kChains)
    if (arch >= chains.arch) out.push_back(fma_chains(chains));
  for (const Mma& mma : kMma)
    if (arch >= mma.from && arch <= mma.to) out.push_back(mma_loop(mma));
  if (arch == 90 && arch_specific)
    for (const Wgmma& wgmma : kWgmma) out.push_back(wgmma_loop(wgmma));
  return out;
}

}  // namespace purlin::measure
