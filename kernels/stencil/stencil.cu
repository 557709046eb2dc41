// SPDX-License-Identifier: Apache-2.0
// 7-point Jacobi step on a Z x Y x X grid. The parameters are those of stencil.toml.

#define TILE_Y (BLOCK_Y * ROWS)
#define THREADS (BLOCK_X * BLOCK_Y)
#define PITCH (BLOCK_X + 2)  // of a plane's tile with its halo

constexpr int kUnroll = UNROLL ? PLANES : 1;

// The grid's value, 0 outside of it.
__device__ __forceinline__ float at(const float* __restrict__ grid, int z, int y, int x, int Z,
                                    int Y, int X) {
  const bool inside = z >= 0 && z < Z && y >= 0 && y < Y && x >= 0 && x < X;
  return inside ? grid[((size_t)z * Y + y) * X + x] : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    stencil(const float* __restrict__ input, float* __restrict__ output, float c0, float c1, int Z,
            int Y, int X) {
#define AT(z, y, x) at(input, z, y, x, Z, Y, X)
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int x0 = blockIdx.x * BLOCK_X, y0 = blockIdx.y * TILE_Y, z0 = blockIdx.z * PLANES;
  const int x = x0 + tx;
#if SHARED
  __shared__ float tile[(TILE_Y + 2) * PITCH];
#endif
  float below[ROWS], centre[ROWS], above[ROWS];
#if QUEUE
#pragma unroll
  for (int j = 0; j < ROWS; ++j) {
    const int y = y0 + j * BLOCK_Y + ty;
    below[j] = AT(z0 - 1, y, x);
    centre[j] = AT(z0, y, x);
  }
#endif

#pragma unroll kUnroll
  for (int p = 0; p < PLANES; ++p) {
    const int z = z0 + p;
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int y = y0 + j * BLOCK_Y + ty;
      above[j] = AT(z + 1, y, x);
#if !QUEUE
      below[j] = AT(z - 1, y, x);
      centre[j] = AT(z, y, x);
#endif
    }
#if SHARED
    __syncthreads();  // the last plane's tile is no longer read
#pragma unroll
    for (int j = 0; j < ROWS; ++j) tile[(j * BLOCK_Y + ty + 1) * PITCH + tx + 1] = centre[j];
    for (int i = ty * BLOCK_X + tx; i < 2 * TILE_Y; i += THREADS) {  // left and right of the tile
      const int dy = i / 2, dx = i % 2 * (BLOCK_X + 1);
      tile[(dy + 1) * PITCH + dx] = AT(z, y0 + dy, x0 + dx - 1);
    }
    for (int i = ty * BLOCK_X + tx; i < 2 * BLOCK_X; i += THREADS) {  // above and below it
      const int dy = i / BLOCK_X * (TILE_Y + 1), dx = i % BLOCK_X;
      tile[dy * PITCH + dx + 1] = AT(z, y0 + dy - 1, x0 + dx);
    }
    __syncthreads();
#endif
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int dy = j * BLOCK_Y + ty, y = y0 + dy;
#if SHARED
      const float* here = tile + (dy + 1) * PITCH + tx + 1;
      const float plane = here[-1] + here[1] + here[-PITCH] + here[PITCH];
#else
      const float plane = AT(z, y, x - 1) + AT(z, y, x + 1) + AT(z, y - 1, x) + AT(z, y + 1, x);
#endif
      const bool boundary = x == 0 || x == X - 1 || y == 0 || y == Y - 1 || z == 0 || z == Z - 1;
      const float result =
          boundary ? centre[j] : c0 * centre[j] + c1 * (plane + below[j] + above[j]);
      if (z < Z && y < Y && x < X) output[((size_t)z * Y + y) * X + x] = result;
#if QUEUE
      below[j] = centre[j];
      centre[j] = above[j];
#endif
    }
  }
}
