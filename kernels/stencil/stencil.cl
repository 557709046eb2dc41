// SPDX-License-Identifier: Apache-2.0
// 7-point Jacobi step on a Z x Y x X grid. The parameters are those of stencil.toml; stencil.cu is
// the same algorithm.

#define TILE_Y (BLOCK_Y * ROWS)
#define THREADS (BLOCK_X * BLOCK_Y)
#define PITCH (BLOCK_X + 2)  // of a plane's tile with its halo

// The grid's value, 0 outside of it.
inline float at(__global const float* restrict grid, int z, int y, int x, int Z, int Y, int X) {
  const bool inside = z >= 0 && z < Z && y >= 0 && y < Y && x >= 0 && x < X;
  return inside ? grid[((size_t)z * Y + y) * X + x] : 0.0f;
}

__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1))) void stencil(
    __global const float* restrict input, __global float* restrict output, float c0, float c1,
    int Z, int Y, int X) {
#define AT(z, y, x) at(input, z, y, x, Z, Y, X)
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int x0 = get_group_id(0) * BLOCK_X, y0 = get_group_id(1) * TILE_Y,
            z0 = get_group_id(2) * PLANES;
  const int x = x0 + tx;
#if SHARED
  __local float tile[(TILE_Y + 2) * PITCH];
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

#if UNROLL
#pragma unroll
#else
#pragma unroll 1
#endif
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
    barrier(CLK_LOCAL_MEM_FENCE);  // the last plane's tile is no longer read
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
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
      const int dy = j * BLOCK_Y + ty, y = y0 + dy;
#if SHARED
      __local const float* here = tile + (dy + 1) * PITCH + tx + 1;
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
