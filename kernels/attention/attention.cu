// SPDX-License-Identifier: Apache-2.0
// O = softmax(Q * transpose(K) / sqrt(D)) * V for each of HEADS heads of S rows of D = HEAD
// columns, bf16 in and out, fp32 inside. -DCAUSAL=1: row i sees the keys up to i. The parameters
// are those of attention.toml. Needs sm_90a.
//
// One warp group copies Q, and tiles of K and V in the order of their use (the producer). Each of
// CONSUMERS warp groups owns 64 rows of Q. The softmax is computed tile by tile: with each tile the
// largest score of a row may grow, and then what is summed shrinks.
#include "hopper.cuh"

#ifndef CAUSAL
#define CAUSAL 0
#endif
#define BQ (64 * CONSUMERS)
#define THREADS (128 * (CONSUMERS + 1))
#define SLICES (HEAD / 64)  // of 64 columns: 128 bytes of a row
#define Q_SLICE (BQ * 128)  // bytes
#define TILE_SLICE (BKV * 128)
#define Q_BYTES (SLICES * Q_SLICE)
#define TILE_BYTES (SLICES * TILE_SLICE)

struct Tiles : Ring<STAGES> {
  u32 first;
  __device__ __forceinline__ u32 tile() const { return first + stage * TILE_BYTES; }
};

__device__ __forceinline__ void copy_tile(Tiles& at, const TensorMap& map, int head, int row) {
  at.wait_empty();
  expect_bytes(at.full(), TILE_BYTES);
#pragma unroll
  for (int slice = 0; slice < SLICES; ++slice)
    copy_box(at.tile() + slice * TILE_SLICE, map, head, row, slice * 64, at.full());
  at.advance();
}

__device__ __forceinline__ void produce(const TensorMap& Q, const TensorMap& K, const TensorMap& V,
                                        u32 q, u32 q_barrier, Tiles at, int head, int row,
                                        int count) {
  expect_bytes(q_barrier, Q_BYTES);
#pragma unroll
  for (int slice = 0; slice < SLICES; ++slice)
    copy_box(q + slice * Q_SLICE, Q, head, row, slice * 64, q_barrier);
  copy_tile(at, K, head, 0);
  for (int i = 0; i < count; ++i) {
    if (OVERLAP && i + 1 < count) copy_tile(at, K, head, (i + 1) * BKV);
    copy_tile(at, V, head, i * BKV);
    if (!OVERLAP && i + 1 < count) copy_tile(at, K, head, (i + 1) * BKV);
  }
}

// score (64 x BKV) = Q * transpose(K).
__device__ __forceinline__ void start_scores(float (&score)[BKV / 2], u32 q, u32 k) {
#pragma unroll
  for (int slice = 0; slice < SLICES; ++slice) {
    const u64 a = operand(q + slice * Q_SLICE), b = operand(k + slice * TILE_SLICE);
#pragma unroll
    for (int step = 0; step < 4; ++step)
      multiply(score, a + step * 2, b + step * 2, slice > 0 || step > 0);
  }
}

// sum (64 x HEAD) += weights (64 x BKV, in registers) * V.
__device__ __forceinline__ void start_output(float (&sum)[HEAD / 2], const u32 (&weights)[BKV / 4],
                                             u32 v) {
  const u64 b = operand_along_n(v, TILE_SLICE);
#pragma unroll
  for (int step = 0; step < BKV / 16; ++step)
    multiply_along_n(sum, weights + step * 4, b + step * 128, true);
}

__device__ __forceinline__ float infinity() { return __int_as_float(0x7F800000); }

__device__ __forceinline__ float power_of_two(float exponent) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
  return power;
}

__device__ __forceinline__ float largest_of_quad(float value) {
  value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
  return fmaxf(value, __shfl_xor_sync(~0u, value, 2));
}

// Two rows of a thread: the largest score, and the sum of the weights of its columns.
struct Softmax {
  float top[2] = {-infinity(), -infinity()}, total[2] = {0, 0};

  // Turns scores into weights. What was summed before is to be multiplied by `shrink`.
  __device__ __forceinline__ void add(float (&score)[BKV / 2], float scale, float (&shrink)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = top[half];
#pragma unroll
      for (int j = 0; j < BKV / 8; ++j)
        largest = fmaxf(largest, fmaxf(score[j * 4 + half * 2], score[j * 4 + half * 2 + 1]));
      largest = largest_of_quad(largest);
      shrink[half] = power_of_two((top[half] - largest) * scale);
      top[half] = largest;
      const float base = largest * scale;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < BKV / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& place = score[j * 4 + half * 2 + i];
          place = power_of_two(__fmaf_rn(place, scale, -base));
          sum += place;
        }
      total[half] = total[half] * shrink[half] + sum;
    }
  }
};

// Hides what lies behind the last key, or behind the row's own key.
__device__ __forceinline__ void mask(float (&score)[BKV / 2], int row, int column, int S) {
  if (column + BKV <= S && !(CAUSAL && column + BKV > row + 1)) return;
  const int lane = threadIdx.x % 32;
  row += threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < BKV / 2; ++j) {
    const int key = column + j / 4 * 8 + lane % 4 * 2 + j % 2;
    const bool hidden = key >= S || (CAUSAL && key > row + j / 2 % 2 * 8);
    score[j] = hidden ? -infinity() : score[j];
  }
}

__device__ __forceinline__ void to_weights(const float (&score)[BKV / 2], u32 (&weights)[BKV / 4]) {
#pragma unroll
  for (int i = 0; i < BKV / 4; ++i) weights[i] = pack(score[i * 2], score[i * 2 + 1]);
}

__device__ __forceinline__ void shrink_sums(float (&sum)[HEAD / 2], const float (&shrink)[2]) {
#pragma unroll
  for (int i = 0; i < HEAD / 2; ++i) sum[i] *= shrink[i / 2 % 2];
}

// The consumers take turns at the tensor cores, so that one computes its softmax while the next
// multiplies. Each has a barrier, at which the one before it arrives.
struct Turns {
  int consumer;
  __device__ __forceinline__ void begin() const {
    if (TURNS && CONSUMERS > 1 && consumer == CONSUMERS - 1) arrive_at_threads(1, 256);
  }
  __device__ __forceinline__ void wait() const {
    if (TURNS && CONSUMERS > 1) sync_threads(1 + consumer, 256);
  }
  __device__ __forceinline__ void pass_on() const {
    if (TURNS && CONSUMERS > 1) arrive_at_threads(1 + (consumer + 1) % CONSUMERS, 256);
  }
};

__device__ __forceinline__ void release(u32 empty) {
  if (threadIdx.x % 128 == 0) arrive(empty);
}

__device__ __forceinline__ void consume(bf16* __restrict__ O, u32 q, u32 q_barrier, Tiles at,
                                        int consumer, int head, int row, int count, int S,
                                        float scale) {
  float score[BKV / 2], sum[HEAD / 2] = {}, shrink[2];
  u32 weights[BKV / 4];
  Softmax softmax;
  const Turns turns{consumer};
  turns.begin();
  wait_for(q_barrier, 0);
#if OVERLAP
  // The scores of the next tile are computed while this tile's weights meet V, and the softmax of
  // the next tile runs while the tensor cores still work on V.
  at.wait_full();
  begin_products();
  start_scores(score, q, at.tile());
  end_product_group();
  wait_for_products<0>();
  pin(score);
  release(at.empty());
  at.advance();
  mask(score, row, 0, S);
  softmax.add(score, scale, shrink);
  to_weights(score, weights);
  for (int i = 0; i + 1 < count; ++i) {
    at.wait_full();
    turns.wait();
    pin(score);
    begin_products();
    start_scores(score, q, at.tile());
    end_product_group();
    const u32 k_empty = at.empty();
    at.advance();
    at.wait_full();
    pin(sum);
    start_output(sum, weights, at.tile());
    end_product_group();
    turns.pass_on();
    wait_for_products<1>();
    pin(score);
    release(k_empty);
    mask(score, row, (i + 1) * BKV, S);
    softmax.add(score, scale, shrink);
    wait_for_products<0>();
    pin(sum);
    release(at.empty());
    at.advance();
    to_weights(score, weights);
    shrink_sums(sum, shrink);
  }
  at.wait_full();
  pin(sum);
  begin_products();
  start_output(sum, weights, at.tile());
  end_product_group();
  wait_for_products<0>();
  pin(sum);
#else
  for (int i = 0; i < count; ++i) {
    at.wait_full();
    pin(score);
    begin_products();
    start_scores(score, q, at.tile());
    end_product_group();
    wait_for_products<0>();
    pin(score);
    release(at.empty());
    at.advance();
    mask(score, row, i * BKV, S);
    softmax.add(score, scale, shrink);
    to_weights(score, weights);
    shrink_sums(sum, shrink);
    at.wait_full();
    pin(sum);
    begin_products();
    start_output(sum, weights, at.tile());
    end_product_group();
    wait_for_products<0>();
    pin(sum);
    release(at.empty());
    at.advance();
  }
#endif
  float share[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = softmax.total[half];
    total += __shfl_xor_sync(~0u, total, 1);
    total += __shfl_xor_sync(~0u, total, 2);
    share[half] = 1 / total;
  }
  shrink_sums(sum, share);
  store_sums<true>(sum, O + (size_t)head * S * HEAD, HEAD, row, 0, S, HEAD);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ TensorMap Q, const __grid_constant__ TensorMap K,
              const __grid_constant__ TensorMap V, bf16* __restrict__ O, int S, int D) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const u32 q = first_tile(shared);
  Tiles at;
  at.first = q + Q_BYTES;
  at.place(at.first + STAGES * TILE_BYTES);
  const u32 q_barrier = at.barriers + Ring<STAGES>::kBytes;
  if (threadIdx.x == 0) {
    at.init(CONSUMERS);
    init_barrier(q_barrier, 1);
    publish_barriers();
  }
  __syncthreads();

  // With a causal mask the last rows have most work, so they start first.
  const int head = HEADS_FIRST ? blockIdx.x : blockIdx.y;
  const int tiles = HEADS_FIRST ? gridDim.y : gridDim.x;
  const int in_order = HEADS_FIRST ? blockIdx.y : blockIdx.x;
  const int tile = CAUSAL ? tiles - 1 - in_order : in_order;
  const int row = tile * BQ;
  const int keys = CAUSAL ? min(S, row + BQ) : S;
  const int count = (keys + BKV - 1) / BKV;
  const int group = threadIdx.x / 128;
  if (group == 0) {
    if (CONSUMERS > 1) give_registers_back<CONSUMERS == 3 ? 32 : 24>();
    if (threadIdx.x == 0) produce(Q, K, V, q, q_barrier, at, head, row, count);
  } else {
    if (CONSUMERS > 1) take_registers<CONSUMERS == 3 ? 160 : 240>();
    const float scale = 1.4426950408889634f * rsqrtf((float)D);  // of powers of two
    const int consumer = group - 1;
    consume(O, q + consumer * (64 * 128), q_barrier, at, consumer, head, row + consumer * 64, count,
            S, scale);
  }
}
