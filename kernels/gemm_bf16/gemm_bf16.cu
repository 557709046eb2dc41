// SPDX-License-Identifier: Apache-2.0
// C = A * B on tensor cores, bf16 in and fp32 out, row-major. The parameters are those of
// gemm_bf16.toml. Needs sm_80: cp.async, ldmatrix and mma.sync.m16n8k16.
//
// Tiles lie in shared memory as 16-byte chunks of eight elements; the chunks of a row are permuted
// by its number, so that the eight rows that ldmatrix reads at once lie in different banks.

#define WARPS_N (BN / WN)
#define THREADS (32 * (BM / WM) * WARPS_N)
#define A_CHUNKS (BK / 8)  // per row of the tile
#define B_CHUNKS (BN / 8)
#define TILE_ELEMENTS (BK * (BM + BN))

typedef unsigned short bf16;

__device__ __forceinline__ unsigned shared_address(const bf16* pointer) {
  return (unsigned)__cvta_generic_to_shared(pointer);
}

// Starts copying a chunk to shared memory; writes zeros where there is nothing to copy.
__device__ __forceinline__ void copy_chunk(bf16* to, const bf16* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(exists ? 16 : 0));
}

__device__ __forceinline__ void end_copy_group() { asm volatile("cp.async.commit_group;"); }

// Waits until at most `pending` of this thread's copy groups are on their way.
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Four 8 x 8 matrices whose rows start at the lanes' addresses, as operands of A.
__device__ __forceinline__ void load_matrices(unsigned (&out)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}

// The same, transposed: operands of B from a row-major tile.
__device__ __forceinline__ void load_matrices_transposed(unsigned (&out)[4], const bf16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row))
               : "memory");
}

// sum (16 x 8) += a (16 x 16) * b (16 x 8).
__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Where a chunk of a tile lies, in elements. Rows of A's tile may be shorter than the 128 bytes of
// all banks; then several rows share a line, and the permutation counts lines. Unsigned, so that
// what does not change from row to row is seen to be constant.
__device__ __forceinline__ unsigned place_in_a(unsigned row, unsigned chunk) {
  constexpr unsigned kRowsPerLine = A_CHUNKS < 8 ? 8 / A_CHUNKS : 1;
  return (row * A_CHUNKS + (chunk ^ (row / kRowsPerLine % (A_CHUNKS < 8 ? A_CHUNKS : 8)))) * 8;
}

__device__ __forceinline__ unsigned place_in_b(unsigned row, unsigned chunk) {
  return (row * B_CHUNKS + (chunk ^ (row % 8))) * 8;
}

// Every thread copies the same column of chunks of each tile, so that it needs one address of
// either matrix and the distance to its next row.
__device__ __forceinline__ void start_tile(const bf16* __restrict__ A, const bf16* __restrict__ B,
                                           unsigned M, unsigned N, unsigned K, unsigned row0,
                                           unsigned column0, unsigned k0, bf16* tile) {
  constexpr unsigned kRowsOfA = THREADS / A_CHUNKS, kRowsOfB = THREADS / B_CHUNKS;
  bf16* b_tile = tile + BM * BK;
  const unsigned dy = threadIdx.x / A_CHUNKS, a_chunk = threadIdx.x % A_CHUNKS;
  const bf16* a = A + (size_t)(row0 + dy) * K + k0 + a_chunk * 8;
  const bool a_exists = k0 + a_chunk * 8 < K;
#pragma unroll
  for (unsigned i = 0; i < BM / kRowsOfA; ++i) {
    const bool exists = a_exists && row0 + dy + i * kRowsOfA < M;
    copy_chunk(tile + place_in_a(dy + i * kRowsOfA, a_chunk), exists ? a + i * (kRowsOfA * K) : A,
               exists);
  }
  const unsigned dk = threadIdx.x / B_CHUNKS, b_chunk = threadIdx.x % B_CHUNKS;
  const bf16* b = B + (size_t)(k0 + dk) * N + column0 + b_chunk * 8;
  const bool b_exists = column0 + b_chunk * 8 < N;
#pragma unroll
  for (unsigned i = 0; i < BK / kRowsOfB; ++i) {
    const bool exists = b_exists && k0 + dk + i * kRowsOfB < K;
    copy_chunk(b_tile + place_in_b(dk + i * kRowsOfB, b_chunk), exists ? b + i * (kRowsOfB * N) : B,
               exists);
  }
}

// A warp's operands of one step of 16 along K.
struct Operands {
  unsigned a[WM / 16][4], b[WN / 16][4];
};

__device__ __forceinline__ void load_operands(Operands& out, const bf16* tile, int warp_row,
                                              int warp_column, int k) {
  const bf16* b_tile = tile + BM * BK;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
    load_matrices(out.a[i], tile + place_in_a(warp_row + i * 16 + lane % 16, k / 8 + lane / 16));
#pragma unroll
  for (int j = 0; j < WN / 16; ++j)
    load_matrices_transposed(
        out.b[j], b_tile + place_in_b(k + lane % 16, warp_column / 8 + j * 2 + lane / 16));
}

__device__ __forceinline__ void multiply_operands(const Operands& in,
                                                  float (&sum)[WM / 16][WN / 8][4]) {
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 8; ++j)
      multiply(sum[i][j], in.a[i], in.b[j / 2][j % 2 * 2], in.b[j / 2][j % 2 * 2 + 1]);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_bf16(const bf16* __restrict__ A, const bf16* __restrict__ B, float* __restrict__ C, int M,
              int N, int K) {
  extern __shared__ __align__(128) bf16 tiles[];

  // Blocks run down GROUP rows before they go on to the next column.
  const int block = blockIdx.y * gridDim.x + blockIdx.x;
  const int group = block / (GROUP * gridDim.x);
  const int height = min(GROUP, (int)gridDim.y - group * GROUP);
  const int in_group = block % (GROUP * gridDim.x);
  const int row0 = (group * GROUP + in_group % height) * BM;
  const int column0 = in_group / height * BN;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / WARPS_N * WM, warp_column = warp % WARPS_N * WN;
  float sum[WM / 16][WN / 8][4] = {};

  const int steps = (K + BK - 1) / BK;
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < steps) start_tile(A, B, M, N, K, row0, column0, s * BK, tiles + s * TILE_ELEMENTS);
    end_copy_group();
  }
  int stage = 0;  // of the tile to multiply
#if AHEAD
  // Operands are loaded one step before their multiplication, also across tiles. The last step of a
  // tile waits for the next tile. After it no thread reads the previous tile.
  Operands operands[2];
  wait_for_copies<STAGES - 2>();
  __syncthreads();
  load_operands(operands[0], tiles, warp_row, warp_column, 0);
  for (int step = 0; step < steps; ++step) {
    const int next = stage + 1 == STAGES ? 0 : stage + 1;
    const int ahead = step + STAGES - 1;
    if (ahead < steps) {
      bf16* tile = tiles + (stage == 0 ? STAGES - 1 : stage - 1) * TILE_ELEMENTS;
      start_tile(A, B, M, N, K, row0, column0, ahead * BK, tile);
    }
    end_copy_group();  // even if empty: the wait counts groups
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      const bool last = k + 16 == BK;
      if (last) {
        wait_for_copies<STAGES - 2>();
        __syncthreads();
      }
      // After the last tile of all what lies there is loaded and not used.
      load_operands(operands[k / 16 % 2 ^ 1], tiles + (last ? next : stage) * TILE_ELEMENTS,
                    warp_row, warp_column, last ? 0 : k + 16);
      multiply_operands(operands[k / 16 % 2], sum);
    }
    stage = next;
  }
#else
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();  // everybody's copies are there, and the stage before is no longer read
    const int ahead = step + STAGES - 1;
    if (ahead < steps) {
      bf16* tile = tiles + (stage == 0 ? STAGES - 1 : stage - 1) * TILE_ELEMENTS;
      start_tile(A, B, M, N, K, row0, column0, ahead * BK, tile);
    }
    end_copy_group();  // even if empty: the wait counts groups
    const bf16* tile = tiles + stage * TILE_ELEMENTS;
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      Operands operands;
      load_operands(operands, tile, warp_row, warp_column, k);
      multiply_operands(operands, sum);
    }
    stage = stage + 1 == STAGES ? 0 : stage + 1;
  }
#endif

#pragma unroll
  for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
    for (int j = 0; j < WN / 8; ++j) {
      const int row = row0 + warp_row + i * 16 + lane / 4;
      const int column = column0 + warp_column + j * 8 + lane % 4 * 2;
      if (column >= N) continue;
      float* out = C + (size_t)row * N + column;
      if (row < M) *reinterpret_cast<float2*>(out) = make_float2(sum[i][j][0], sum[i][j][1]);
      if (row + 8 < M)
        *reinterpret_cast<float2*>(out + (size_t)8 * N) = make_float2(sum[i][j][2], sum[i][j][3]);
    }
  }
}
