// SPDX-License-Identifier: Apache-2.0
// C = A * B, row-major. The parameters are those of gemm.toml; gemm.cu is the same algorithm.
//
// A thread's TM x TN results are vectors of VECTOR elements, spread over the tile at strides of
// ROWS * VECTOR and COLUMNS * VECTOR, so that neighbours read and write neighbouring vectors.

#define COLUMNS (BN / TN)  // work-items of the group along N
#define ROWS (BM / TM)     // work-items of the group along M
#define THREADS (ROWS * COLUMNS)
#define A_LOADS (BM * BK / (THREADS * VECTOR))  // vectors per work-item and tile
#define B_LOADS (BK * BN / (THREADS * VECTOR))
#define A_STRIDE (BM + PAD)

typedef struct __attribute__((aligned(4 * VECTOR))) {
  float element[VECTOR];
} Vector;

// A's tile is read along K, B's along N; what lies outside the matrices reads as zero.
inline void load_tiles(__global const float* restrict A, __global const float* restrict B, int M,
                       int N, int K, int row0, int column0, int k0, Vector* a, Vector* b) {
  const int thread = get_local_id(0);
  const Vector zero = {{0}};
#pragma unroll
  for (int i = 0; i < A_LOADS; ++i) {
    const int index = (i * THREADS + thread) * VECTOR;
    const int row = row0 + index / BK, k = k0 + index % BK;
    a[i] = zero;
    if (row < M && k < K) a[i] = *(__global const Vector*)(A + (size_t)row * K + k);
  }
#pragma unroll
  for (int i = 0; i < B_LOADS; ++i) {
    const int index = (i * THREADS + thread) * VECTOR;
    const int k = k0 + index / BN, column = column0 + index % BN;
    b[i] = zero;
    if (k < K && column < N) b[i] = *(__global const Vector*)(B + (size_t)k * N + column);
  }
}

inline void store_tiles(const Vector* a, const Vector* b, __local float* a_tile,
                        __local float* b_tile) {
  const int thread = get_local_id(0);
#pragma unroll
  for (int i = 0; i < A_LOADS; ++i) {
    const int index = (i * THREADS + thread) * VECTOR;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
      a_tile[(index % BK + v) * A_STRIDE + index / BK] = a[i].element[v];
  }
#pragma unroll
  for (int i = 0; i < B_LOADS; ++i)
    *(__local Vector*)(b_tile + (i * THREADS + thread) * VECTOR) = b[i];
}

inline void multiply(__local const float* a_tile, __local const float* b_tile, int y, int x,
                     float (*sum)[TN]) {
#if UNROLL
#pragma unroll
#else
#pragma unroll 1
#endif
  for (int k = 0; k < BK; ++k) {
    Vector a[TM / VECTOR], b[TN / VECTOR];
#pragma unroll
    for (int i = 0; i < TM / VECTOR; ++i)
      a[i] = *(__local const Vector*)(a_tile + k * A_STRIDE + (i * ROWS + y) * VECTOR);
#pragma unroll
    for (int j = 0; j < TN / VECTOR; ++j)
      b[j] = *(__local const Vector*)(b_tile + k * BN + (j * COLUMNS + x) * VECTOR);
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j)
        sum[i][j] += a[i / VECTOR].element[i % VECTOR] * b[j / VECTOR].element[j % VECTOR];
  }
}

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void gemm(
    __global const float* restrict A, __global const float* restrict B, __global float* restrict C,
    int M, int N, int K) {
  __local float a_tiles[STAGES][BK * A_STRIDE] __attribute__((aligned(16)));
  __local float b_tiles[STAGES][BK * BN] __attribute__((aligned(16)));

  // Groups run down GROUP rows before they go on to the next column.
  const int grid_x = get_num_groups(0), grid_y = get_num_groups(1);
  const int block = get_group_id(1) * grid_x + get_group_id(0);
  const int group = block / (GROUP * grid_x);
  const int height = min(GROUP, grid_y - group * GROUP);
  const int in_group = block % (GROUP * grid_x);
  const int row0 = (group * GROUP + in_group % height) * BM;
  const int column0 = in_group / height * BN;

  const int warp = get_local_id(0) / 32, lane = get_local_id(0) % 32;
  const int x = warp % (COLUMNS / LANES) * LANES + lane % LANES;
  const int y = warp / (COLUMNS / LANES) * (32 / LANES) + lane / LANES;

  float sum[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) sum[i][j] = 0;
  Vector a[A_LOADS], b[B_LOADS];
#if STAGES == 1
  for (int k0 = 0; k0 < K; k0 += BK) {
    load_tiles(A, B, M, N, K, row0, column0, k0, a, b);
    store_tiles(a, b, a_tiles[0], b_tiles[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply(a_tiles[0], b_tiles[0], y, x, sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#else
  load_tiles(A, B, M, N, K, row0, column0, 0, a, b);
  store_tiles(a, b, a_tiles[0], b_tiles[0]);
  barrier(CLK_LOCAL_MEM_FENCE);
  int stage = 0;
  for (int k0 = BK; k0 < K; k0 += BK) {
    load_tiles(A, B, M, N, K, row0, column0, k0, a, b);
    multiply(a_tiles[stage], b_tiles[stage], y, x, sum);
    store_tiles(a, b, a_tiles[stage ^ 1], b_tiles[stage ^ 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
    stage ^= 1;
  }
  multiply(a_tiles[stage], b_tiles[stage], y, x, sum);
#endif

#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int row = row0 + (i / VECTOR * ROWS + y) * VECTOR + i % VECTOR;
#pragma unroll
    for (int j = 0; j < TN / VECTOR; ++j) {
      const int column = column0 + (j * COLUMNS + x) * VECTOR;
      Vector result;
#pragma unroll
      for (int v = 0; v < VECTOR; ++v) result.element[v] = sum[i][j * VECTOR + v];
      if (row < M && column < N) *(__global Vector*)(C + (size_t)row * N + column) = result;
    }
  }
}
