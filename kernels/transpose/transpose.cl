// SPDX-License-Identifier: Apache-2.0
// Transpose of a Y x X matrix. The parameters are those of transpose.toml; transpose.cu is the same
// algorithm.

#define THREADS (THREADS_X * THREADS_Y)
#define STRIDE (TILE_X + PAD)

typedef struct __attribute__((aligned(4 * VECTOR))) {
  float element[VECTOR];
} Vector;

__kernel __attribute__((reqd_work_group_size(THREADS_X, THREADS_Y, 1))) void transpose(
    __global const float* restrict input, __global float* restrict output, int Y, int X) {
  const int y0 = get_group_id(1) * TILE_Y, x0 = get_group_id(0) * TILE_X;
#if SHARED
  __local float tile[TILE_Y * STRIDE];
#pragma unroll
  for (int i = 0; i < TILE_Y / THREADS_Y; ++i) {
    const int dy = i * THREADS_Y + get_local_id(1);
#pragma unroll
    for (int j = 0; j < TILE_X / (THREADS_X * VECTOR); ++j) {
      const int dx = (j * THREADS_X + get_local_id(0)) * VECTOR;
      if (y0 + dy >= Y || x0 + dx >= X) continue;
      const Vector in = *(__global const Vector*)(input + (size_t)(y0 + dy) * X + x0 + dx);
#pragma unroll
      for (int v = 0; v < VECTOR; ++v) tile[dy * STRIDE + dx + v] = in.element[v];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // The tile is written with the work-items renumbered, so that neighbours write neighbours.
  const int thread = get_local_id(1) * THREADS_X + get_local_id(0);
#pragma unroll
  for (int i = 0; i < TILE_Y * TILE_X / (THREADS * VECTOR); ++i) {
    const int index = (i * THREADS + thread) * VECTOR;
    const int dx = index / TILE_Y, dy = index % TILE_Y;
    if (x0 + dx >= X || y0 + dy >= Y) continue;
    Vector out;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) out.element[v] = tile[(dy + v) * STRIDE + dx];
    *(__global Vector*)(output + (size_t)(x0 + dx) * Y + y0 + dy) = out;
  }
#else
#pragma unroll
  for (int i = 0; i < TILE_Y / THREADS_Y; ++i) {
    const int dy = i * THREADS_Y + get_local_id(1);
#pragma unroll
    for (int j = 0; j < TILE_X / THREADS_X; ++j) {
      const int y = y0 + dy, x = x0 + j * THREADS_X + get_local_id(0);
      if (y < Y && x < X) output[(size_t)x * Y + y] = input[(size_t)y * X + x];
    }
  }
#endif
}
