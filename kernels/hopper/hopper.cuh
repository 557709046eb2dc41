// SPDX-License-Identifier: Apache-2.0
// What the sample kernels for Hopper share: barriers in shared memory, tiles copied by the tensor
// memory accelerator (TMA), and products of a warp group (wgmma). Needs sm_90a.
//
// A tile lies in shared memory as rows of 128 bytes (64 bf16), permuted by the 128-byte swizzle of
// the tensor map. Each such tile begins at a multiple of 1,024 bytes.
#pragma once

typedef unsigned short bf16;
typedef unsigned int u32;
typedef unsigned long long u64;

// The driver's CUtensorMap. A spec's argument with `tensor_map` passes one by value.
struct alignas(64) TensorMap {
  u64 opaque[16];
};

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  return (u32)__cvta_generic_to_shared(pointer);
}

// -- Barriers ------------------------------------------------------------------------------------

__device__ __forceinline__ void init_barrier(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Waits for the end of the phase with this parity.
__device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
  u32 done = 0;
  while (!done)
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}

__device__ __forceinline__ void arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives at the same barrier of another block of the cluster.
__device__ __forceinline__ void arrive_at_block(u32 barrier, u32 block) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

// Arrives, and lets the phase wait for so many bytes of copies too.
__device__ __forceinline__ void expect_bytes(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ u32 block_in_cluster() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// Makes barriers that one thread has initialised visible to the copies and to the cluster.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}

// Makes this thread's stores to shared memory visible to TMA and wgmma.
__device__ __forceinline__ void publish_stores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A barrier of some of the block's warps, those that only arrive included; 0 is that of
// __syncthreads.
__device__ __forceinline__ void sync_threads(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void arrive_at_threads(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// The two barriers of each stage of a pipeline: `full` when its copies have arrived, `empty` when
// no consumer reads it. Both sides walk through the stages, each with its own Ring.
template <int stages>
struct Ring {
  u32 barriers;
  int stage = 0;
  u32 parity = 0;

  static constexpr int kBytes = stages * 16;
  __device__ __forceinline__ void place(u32 address) { barriers = address; }
  __device__ __forceinline__ void init(u32 consumers) const {
    for (int i = 0; i < stages; ++i) {
      init_barrier(barriers + i * 8, 1);
      init_barrier(barriers + (stages + i) * 8, consumers);
    }
  }
  __device__ __forceinline__ u32 full() const { return barriers + stage * 8; }
  __device__ __forceinline__ u32 empty() const { return barriers + (stages + stage) * 8; }
  __device__ __forceinline__ void wait_full() const { wait_for(full(), parity); }
  __device__ __forceinline__ void wait_empty() const { wait_for(empty(), parity ^ 1); }
  __device__ __forceinline__ void advance() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// The first address of dynamic shared memory where a tile may begin.
__device__ __forceinline__ u32 first_tile(const void* dynamic) {
  return (shared_address(dynamic) + 1023) / 1024 * 1024;
}

// -- Copies --------------------------------------------------------------------------------------

// The box whose first element is (row, column) of the tensor. Elements outside become zeros.
__device__ __forceinline__ void copy_box(u32 to, const TensorMap& map, int row, int column,
                                         u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row)
      : "memory");
}

// The same of a tensor of three extents: rows and columns of matrix `plane`.
__device__ __forceinline__ void copy_box(u32 to, const TensorMap& map, int plane, int row,
                                         int column, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(plane)
      : "memory");
}

// copy_box of two extents, to the same place in each block of the cluster that `blocks` has a bit
// for.
__device__ __forceinline__ void copy_box_to_blocks(u32 to, const TensorMap& map, int row,
                                                   int column, u32 barrier, unsigned short blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "h"(blocks)
      : "memory");
}

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// -- Registers -----------------------------------------------------------------------------------

template <int registers>
__device__ __forceinline__ void give_registers_back() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// -- Products of a warp group --------------------------------------------------------------------

// Describes an operand whose rows of 128 bytes run along K. A step of 16 along K adds 2.
__device__ __forceinline__ u64 operand(u32 address) {
  return (u64)((address & 0x3FFFF) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// Describes an operand whose rows of 128 bytes run along N, and whose groups of 64 columns are
// `group_bytes` apart. A step of 16 along K adds 128.
__device__ __forceinline__ u64 operand_along_n(u32 address, u32 group_bytes) {
  return (u64)((address & 0x3FFFF) >> 4) | (u64)(group_bytes >> 4) << 16 | (u64)(1024 >> 4) << 32 |
         (u64)1 << 62;
}

__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void end_product_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most `pending` groups of products are on their way.
template <int pending>
__device__ __forceinline__ void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Keeps the compiler from moving reads and writes of the sums across a wait.
template <int count>
__device__ __forceinline__ void pin(float (&sum)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

// clang-format off
#define SUMS4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)
#define SUMS32(i) SUMS16(i), SUMS16(i + 16)
#define NAMES0 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES1 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, " \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES2 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define NAMES3 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, " \
  "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, " \
  "%126, %127"
#define PRODUCT(n, names, a, b, add, flags, ...) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " add ", 0;\n" \
               "wgmma.mma_async.sync.aligned.m64n" n "k16.f32.bf16.bf16 {" names "}, " a ", " b \
               ", p, 1, 1" flags ";\n}" : __VA_ARGS__)
#define SHARED(...) __VA_ARGS__ : "l"(a), "l"(b), "r"((int)add)
#define REGISTERS(...) \
  __VA_ARGS__ : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add)
// clang-format on

// sum (64 x 2 * count) = a (64 x 16) * b (16 x 2 * count), added to it if `add`. Both operands are
// in shared memory, with rows along K. A thread's sums of eight columns are four registers: two
// neighbours of row lane / 4, and two of the row 8 below.
__device__ __forceinline__ void multiply(float (&sum)[32], u64 a, u64 b, bool add) {
  PRODUCT("64", NAMES0, "%32", "%33", "%34", ", 0, 0", SHARED(SUMS32(0)));
}
__device__ __forceinline__ void multiply(float (&sum)[64], u64 a, u64 b, bool add) {
  PRODUCT("128", NAMES0 NAMES1, "%64", "%65", "%66", ", 0, 0", SHARED(SUMS32(0), SUMS32(32)));
}
__device__ __forceinline__ void multiply(float (&sum)[96], u64 a, u64 b, bool add) {
  PRODUCT("192", NAMES0 NAMES1 NAMES2, "%96", "%97", "%98", ", 0, 0",
          SHARED(SUMS32(0), SUMS32(32), SUMS32(64)));
}
__device__ __forceinline__ void multiply(float (&sum)[128], u64 a, u64 b, bool add) {
  PRODUCT("256", NAMES0 NAMES1 NAMES2 NAMES3, "%128", "%129", "%130", ", 0, 0",
          SHARED(SUMS32(0), SUMS32(32), SUMS32(64), SUMS32(96)));
}

// The same with a in registers, in the layout of sums turned to bf16, and b with rows along N.
__device__ __forceinline__ void multiply_along_n(float (&sum)[32], const u32* a, u64 b, bool add) {
  PRODUCT("64", NAMES0, "{%32, %33, %34, %35}", "%36", "%37", ", 1", REGISTERS(SUMS32(0)));
}
__device__ __forceinline__ void multiply_along_n(float (&sum)[64], const u32* a, u64 b, bool add) {
  PRODUCT("128", NAMES0 NAMES1, "{%64, %65, %66, %67}", "%68", "%69", ", 1",
          REGISTERS(SUMS32(0), SUMS32(32)));
}

// Two sums as two bf16, the first in the lower half.
__device__ __forceinline__ u32 pack(float low, float high) {
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

// -- Results -------------------------------------------------------------------------------------

// The four lanes that share a row exchange words, so that each stores 16 bytes of it in a piece:
// word b of lane t, of column group b, goes to lane b.
__device__ __forceinline__ void transpose_quad(u32 (&word)[4]) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const u32 got = __shfl_xor_sync(~0u, lane & 1 ? word[i] : word[i + 1], 1);
    if (lane & 1)
      word[i] = got;
    else
      word[i + 1] = got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const u32 got = __shfl_xor_sync(~0u, lane & 2 ? word[i] : word[i + 2], 2);
    if (lane & 2)
      word[i] = got;
    else
      word[i + 2] = got;
  }
}

// Stores a warp group's sums (64 x 2 * count) as bf16 from (row, column) of a row-major matrix on,
// as far as it goes. `wide`: 16 bytes at once in place of 4.
template <bool wide, int count>
__device__ __forceinline__ void store_sums(const float (&sum)[count], bf16* __restrict__ out,
                                           int stride, int row, int column, int rows, int columns) {
  const int lane = threadIdx.x % 32;
  row += threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    bf16* line = out + (size_t)(row + half * 8) * stride;
    const bool exists = row + half * 8 < rows;
#pragma unroll
    for (int j = 0; j < count / 4; j += 4) {
      u32 word[4];
#pragma unroll
      for (int b = 0; b < 4; ++b)
        word[b] = pack(sum[(j + b) * 4 + half * 2], sum[(j + b) * 4 + half * 2 + 1]);
      if constexpr (wide) {
        transpose_quad(word);
        const int at = column + (j + lane % 4) * 8;
        if (exists && at < columns)
          *reinterpret_cast<uint4*>(line + at) = make_uint4(word[0], word[1], word[2], word[3]);
      } else {
#pragma unroll
        for (int b = 0; b < 4; ++b) {
          const int at = column + (j + b) * 8 + lane % 4 * 2;
          if (exists && at < columns) *reinterpret_cast<u32*>(line + at) = word[b];
        }
      }
    }
  }
}
