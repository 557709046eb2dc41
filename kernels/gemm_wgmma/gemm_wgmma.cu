// SPDX-License-Identifier: Apache-2.0
// C = A * transpose(B) by wgmma and TMA, bf16 in and out, fp32 sums. B is N x K, like the weight of
// a linear layer. With -DBIAS_RELU=1, C = max(0, A * transpose(B) + bias). The parameters are those
// of gemm_wgmma.toml. Needs sm_90a.
//
// One warp group copies tiles of A and B to shared memory (the producer). CONSUMERS warp groups
// multiply them; each owns BM / CONSUMERS rows of the block's BM x BN tile of C. Two barriers per
// stage connect them: `full` when the copies have arrived, `empty` when no consumer reads the
// stage. The blocks of a cluster own tiles below each other and copy each a part of B to all of
// them.
#include "hopper.cuh"

#ifndef BIAS_RELU
#define BIAS_RELU 0
#endif
#define BK 64                  // 128 bytes of a row: the width of the swizzle
#define ROWS (BM / CONSUMERS)  // of a consumer
#define THREADS (128 * (CONSUMERS + 1))
#define A_BYTES (BM * BK * 2)
#define B_BYTES (BN * BK * 2)
#define STAGE_BYTES (DEPTH * (A_BYTES + B_BYTES))
#define B_PART (BN / CLUSTER)  // rows of B that a block copies

// A stage has DEPTH slices of A, then as many of B.
struct Stages : Ring<STAGES> {
  u32 tiles;
  __device__ __forceinline__ u32 a(int slice) const {
    return tiles + stage * STAGE_BYTES + slice * A_BYTES;
  }
  __device__ __forceinline__ u32 b(int slice) const {
    return tiles + stage * STAGE_BYTES + DEPTH * A_BYTES + slice * B_BYTES;
  }
};

// The tiles of C in the order of their computation. Clusters run down GROUP rows of cluster tiles
// before they go on to the next column, so that blocks that run at once share A and B in L2.
struct Schedule {
  int rows, columns, tile;  // `rows` of cluster tiles
  int row, column;          // elements of C

  __device__ __forceinline__ Schedule(int M, int N)
      : rows((M + BM * CLUSTER - 1) / (BM * CLUSTER)),
        columns((N + BN - 1) / BN),
        tile(blockIdx.x / CLUSTER) {}
  __device__ __forceinline__ bool find(u32 rank) {
    if (tile >= rows * columns) return false;
    const int group = tile / (GROUP * columns), in_group = tile % (GROUP * columns);
    const int height = min(GROUP, rows - group * GROUP);
    row = ((group * GROUP + in_group % height) * CLUSTER + (int)rank) * BM;
    column = in_group / height * BN;
    tile += gridDim.x / CLUSTER;
    return true;
  }
};

__device__ __forceinline__ void produce(const TensorMap& A, const TensorMap& B, Stages at,
                                        Schedule schedule, u32 rank, int steps) {
  prefetch_map(A);
  prefetch_map(B);
  while (schedule.find(rank)) {
    for (int step = 0; step < steps; ++step) {
      at.wait_empty();
      expect_bytes(at.full(), STAGE_BYTES);
#pragma unroll
      for (int slice = 0; slice < DEPTH; ++slice) {
        const int k = (step * DEPTH + slice) * BK;
        copy_box(at.a(slice), A, schedule.row, k, at.full());
        if (CLUSTER == 1)
          copy_box(at.b(slice), B, schedule.column, k, at.full());
        else
          copy_box_to_blocks(at.b(slice) + rank * (B_PART * BK * 2), B,
                             schedule.column + rank * B_PART, k, at.full(), (1 << CLUSTER) - 1);
      }
      at.advance();
    }
  }
}

// Gives a stage back to the producers of the cluster.
__device__ __forceinline__ void release(u32 empty_barrier) {
  if (CLUSTER == 1) {
    if (threadIdx.x % 128 == 0) arrive(empty_barrier);
  } else if (threadIdx.x % 128 < CLUSTER) {
    arrive_at_block(empty_barrier, threadIdx.x % 128);
  }
}

// What is fused behind the product: nothing, or max(0, C + bias).
__device__ __forceinline__ void finish(float (&sum)[BN / 2], int column, int N,
                                       const bf16* __restrict__ bias) {
#if BIAS_RELU
#pragma unroll
  for (int j = 0; j < BN / 8; ++j) {
    const int at = column + j * 8 + threadIdx.x % 4 * 2;
    const u32 both = at < N ? *reinterpret_cast<const u32*>(bias + at) : 0;
    const float low = __uint_as_float(both << 16), high = __uint_as_float(both & 0xFFFF0000u);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* pair = sum + j * 4 + half * 2;
      pair[0] = fmaxf(pair[0] + low, 0.0f);
      pair[1] = fmaxf(pair[1] + high, 0.0f);
    }
  }
#endif
}

__device__ __forceinline__ void consume(bf16* __restrict__ C, const bf16* __restrict__ bias,
                                        Stages at, Schedule schedule, u32 rank, int consumer, int M,
                                        int N, int steps) {
  float sum[ROWS / 64][BN / 2];
  while (schedule.find(rank)) {
    u32 previous = 0;  // the barrier of the stage that the products before read
    for (int step = 0; step < steps; ++step) {
      at.wait_full();
#pragma unroll
      for (int i = 0; i < ROWS / 64; ++i) pin(sum[i]);
      begin_products();
#pragma unroll
      for (int slice = 0; slice < DEPTH; ++slice) {
        const u64 a = operand(at.a(slice) + consumer * (ROWS * BK * 2));
        const u64 b = operand(at.b(slice));
#pragma unroll
        for (int k = 0; k < BK / 16; ++k)
#pragma unroll
          for (int i = 0; i < ROWS / 64; ++i)
            multiply(sum[i], a + i * (64 * BK * 2 / 16) + k * 2, b + k * 2,
                     step > 0 || slice > 0 || k > 0);
      }
      end_product_group();
#pragma unroll
      for (int i = 0; i < ROWS / 64; ++i) pin(sum[i]);
      wait_for_products<1>();
      if (step > 0) release(previous);
      previous = at.empty();
      at.advance();
    }
    wait_for_products<0>();
#pragma unroll
    for (int i = 0; i < ROWS / 64; ++i) pin(sum[i]);
    release(previous);
#pragma unroll
    for (int i = 0; i < ROWS / 64; ++i) finish(sum[i], schedule.column, N, bias);
#pragma unroll
    for (int i = 0; i < ROWS / 64; ++i)
      store_sums<WIDE_STORES>(sum[i], C, N, schedule.row + consumer * ROWS + i * 64,
                              schedule.column, M, N);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
        gemm_wgmma(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B,
#if BIAS_RELU
                   const bf16* __restrict__ bias,
#endif
                   bf16* __restrict__ C, int M, int N, int K) {
#if !BIAS_RELU
  const bf16* bias = nullptr;
#endif
  extern __shared__ __align__(1024) unsigned char shared[];
  Stages at;
  at.tiles = first_tile(shared);
  at.place(at.tiles + STAGES * STAGE_BYTES);
  if (threadIdx.x == 0) {
    at.init(CONSUMERS * CLUSTER);
    publish_barriers();
  }
  const u32 rank = CLUSTER > 1 ? block_in_cluster() : 0;
  if (CLUSTER > 1)
    sync_cluster();
  else
    __syncthreads();

  const int steps = (K + DEPTH * BK - 1) / (DEPTH * BK);
  const Schedule schedule(M, N);
  const int group = threadIdx.x / 128;
  if (group == 0) {
    if (CONSUMERS > 1) give_registers_back<CONSUMERS == 3 ? 32 : 40>();
    if (threadIdx.x == 0) produce(A, B, at, schedule, rank, steps);
    __syncwarp();  // the barrier of the cluster is for whole warps
  } else {
    if (CONSUMERS > 1) take_registers<CONSUMERS == 3 ? 160 : 232>();
    consume(C, bias, at, schedule, rank, group - 1, M, N, steps);
  }
  // No block ends while another one writes to its shared memory or arrives at its barriers.
  if (CLUSTER > 1) sync_cluster();
}
