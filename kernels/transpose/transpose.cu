// SPDX-License-Identifier: Apache-2.0
// Transpose of a Y x X matrix. The parameters are those of transpose.toml.

#define THREADS (THREADS_X * THREADS_Y)
#define STRIDE (TILE_X + PAD)

struct __align__(VECTOR * sizeof(float)) Vector {
  float element[VECTOR];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(const float* __restrict__ input, float* __restrict__ output, int Y, int X) {
  const int y0 = blockIdx.y * TILE_Y, x0 = blockIdx.x * TILE_X;
#if SHARED
  __shared__ float tile[TILE_Y * STRIDE];
#pragma unroll
  for (int i = 0; i < TILE_Y / THREADS_Y; ++i) {
    const int dy = i * THREADS_Y + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE_X / (THREADS_X * VECTOR); ++j) {
      const int dx = (j * THREADS_X + threadIdx.x) * VECTOR;
      if (y0 + dy >= Y || x0 + dx >= X) continue;
      const Vector in = *reinterpret_cast<const Vector*>(input + (size_t)(y0 + dy) * X + x0 + dx);
#pragma unroll
      for (int v = 0; v < VECTOR; ++v) tile[dy * STRIDE + dx + v] = in.element[v];
    }
  }
  __syncthreads();
  // The tile is written with the threads renumbered, so that neighbours write neighbours.
  const int thread = threadIdx.y * THREADS_X + threadIdx.x;
#pragma unroll
  for (int i = 0; i < TILE_Y * TILE_X / (THREADS * VECTOR); ++i) {
    const int index = (i * THREADS + thread) * VECTOR;
    const int dx = index / TILE_Y, dy = index % TILE_Y;
    if (x0 + dx >= X || y0 + dy >= Y) continue;
    Vector out;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) out.element[v] = tile[(dy + v) * STRIDE + dx];
    *reinterpret_cast<Vector*>(output + (size_t)(x0 + dx) * Y + y0 + dy) = out;
  }
#else
#pragma unroll
  for (int i = 0; i < TILE_Y / THREADS_Y; ++i) {
    const int dy = i * THREADS_Y + threadIdx.y;
#pragma unroll
    for (int j = 0; j < TILE_X / THREADS_X; ++j) {
      const int y = y0 + dy, x = x0 + j * THREADS_X + threadIdx.x;
      if (y < Y && x < X) output[(size_t)x * Y + y] = input[(size_t)y * X + x];
    }
  }
#endif
}
