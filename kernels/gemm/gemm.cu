// SPDX-License-Identifier: Apache-2.0
// C = A * B, row-major. The parameters are those of gemm.toml.
//
// A thread's TM x TN results are vectors of VECTOR elements. They are spread over the tile at
// strides of ROWS * VECTOR and COLUMNS * VECTOR. A warp therefore reads shared memory without bank
// conflicts and writes C in whole sectors.

#define COLUMNS (BN / TN)  // threads of the block along N
#define ROWS (BM / TM)     // threads of the block along M
#define THREADS (ROWS * COLUMNS)
#define A_LOADS (BM * BK / (THREADS * VECTOR))  // vectors per thread and tile
#define B_LOADS (BK * BN / (THREADS * VECTOR))
#define A_STRIDE (BM + PAD)

constexpr int kUnroll = UNROLL ? BK : 1;

struct __align__(VECTOR * sizeof(float)) Vector {
  float element[VECTOR];
};

__device__ __forceinline__ Vector load(const float* address) {
  return *reinterpret_cast<const Vector*>(address);
}

// A's tile is read along K, B's along N; what lies outside the matrices reads as zero.
__device__ __forceinline__ void load_tiles(const float* __restrict__ A, const float* __restrict__ B,
                                           int M, int N, int K, int row0, int column0, int k0,
                                           Vector (&a)[A_LOADS], Vector (&b)[B_LOADS]) {
#pragma unroll
  for (int i = 0; i < A_LOADS; ++i) {
    const int index = (i * THREADS + threadIdx.x) * VECTOR;
    const int row = row0 + index / BK, k = k0 + index % BK;
    a[i] = row < M && k < K ? load(A + (size_t)row * K + k) : Vector{};
  }
#pragma unroll
  for (int i = 0; i < B_LOADS; ++i) {
    const int index = (i * THREADS + threadIdx.x) * VECTOR;
    const int k = k0 + index / BN, column = column0 + index % BN;
    b[i] = k < K && column < N ? load(B + (size_t)k * N + column) : Vector{};
  }
}

__device__ __forceinline__ void store_tiles(const Vector (&a)[A_LOADS], const Vector (&b)[B_LOADS],
                                            float* a_tile, float* b_tile) {
#pragma unroll
  for (int i = 0; i < A_LOADS; ++i) {
    const int index = (i * THREADS + threadIdx.x) * VECTOR;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
      a_tile[(index % BK + v) * A_STRIDE + index / BK] = a[i].element[v];
  }
#pragma unroll
  for (int i = 0; i < B_LOADS; ++i)
    *reinterpret_cast<Vector*>(b_tile + (i * THREADS + threadIdx.x) * VECTOR) = b[i];
}

__device__ __forceinline__ void multiply(const float* a_tile, const float* b_tile, int y, int x,
                                         float (&sum)[TM][TN]) {
#pragma unroll kUnroll
  for (int k = 0; k < BK; ++k) {
    Vector a[TM / VECTOR], b[TN / VECTOR];
#pragma unroll
    for (int i = 0; i < TM / VECTOR; ++i)
      a[i] = load(a_tile + k * A_STRIDE + (i * ROWS + y) * VECTOR);
#pragma unroll
    for (int j = 0; j < TN / VECTOR; ++j) b[j] = load(b_tile + k * BN + (j * COLUMNS + x) * VECTOR);
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j)
        sum[i][j] += a[i / VECTOR].element[i % VECTOR] * b[j / VECTOR].element[j % VECTOR];
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M,
         int N, int K) {
  __shared__ __align__(16) float a_tiles[STAGES][BK * A_STRIDE];
  __shared__ __align__(16) float b_tiles[STAGES][BK * BN];

  // Blocks run down GROUP rows before they go on to the next column.
  const int block = blockIdx.y * gridDim.x + blockIdx.x;
  const int group = block / (GROUP * gridDim.x);
  const int height = min(GROUP, (int)gridDim.y - group * GROUP);
  const int in_group = block % (GROUP * gridDim.x);
  const int row0 = (group * GROUP + in_group % height) * BM;
  const int column0 = in_group / height * BN;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int x = warp % (COLUMNS / LANES) * LANES + lane % LANES;
  const int y = warp / (COLUMNS / LANES) * (32 / LANES) + lane / LANES;

  float sum[TM][TN] = {};
  Vector a[A_LOADS], b[B_LOADS];
#if STAGES == 1
  for (int k0 = 0; k0 < K; k0 += BK) {
    load_tiles(A, B, M, N, K, row0, column0, k0, a, b);
    store_tiles(a, b, a_tiles[0], b_tiles[0]);
    __syncthreads();
    multiply(a_tiles[0], b_tiles[0], y, x, sum);
    __syncthreads();
  }
#else
  load_tiles(A, B, M, N, K, row0, column0, 0, a, b);
  store_tiles(a, b, a_tiles[0], b_tiles[0]);
  __syncthreads();
  int stage = 0;
  for (int k0 = BK; k0 < K; k0 += BK, stage ^= 1) {
    load_tiles(A, B, M, N, K, row0, column0, k0, a, b);
    multiply(a_tiles[stage], b_tiles[stage], y, x, sum);
    store_tiles(a, b, a_tiles[stage ^ 1], b_tiles[stage ^ 1]);
    __syncthreads();
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
      if (row < M && column < N) *reinterpret_cast<Vector*>(C + (size_t)row * N + column) = result;
    }
  }
}
