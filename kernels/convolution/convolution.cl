// SPDX-License-Identifier: Apache-2.0
// 2D convolution of a padded image with an F x F filter. The parameters are those of
// convolution.toml; convolution.cu is the same algorithm.

#define TILE_X (BLOCK_X * ITEMS_X)
#define TILE_Y (BLOCK_Y * ITEMS_Y)
#define THREADS (BLOCK_X * BLOCK_Y)
#define LARGEST_FILTER 17

#if FILTER
#define SIZE FILTER  // known to the compiler, which unrolls the filter's rows
#else
#define SIZE F
#endif

#if ADJACENT
#define COLUMN(i) ((int)get_local_id(0) * ITEMS_X + (i))
#else
#define COLUMN(i) ((int)get_local_id(0) + (i)*BLOCK_X)
#endif
#define ROW(j) ((int)get_local_id(1) + (j)*BLOCK_Y)

__kernel __attribute__((reqd_work_group_size(BLOCK_X, BLOCK_Y, 1))) void convolution(
    __global const float* restrict input, __global const float* restrict filter,
    __global float* restrict output, int Y, int X, int F) {
  const int x0 = (int)get_group_id(0) * TILE_X, y0 = (int)get_group_id(1) * TILE_Y;
  const int width = X + SIZE - 1, height = Y + SIZE - 1;
#if SHARED || FILTER_SHARED
  const int thread = (int)get_local_id(1) * BLOCK_X + (int)get_local_id(0);
#endif
#if FILTER_SHARED
  __local float weights[FILTER ? FILTER * FILTER : LARGEST_FILTER * LARGEST_FILTER];
  for (int i = thread; i < SIZE * SIZE; i += THREADS) weights[i] = filter[i];
#else
  __global const float* weights = filter;
#endif
#if SHARED
  const int pitch = TILE_X + SIZE - 1;
  __local float image[(TILE_Y + SIZE - 1) * (TILE_X + SIZE - 1)];
  for (int i = thread; i < pitch * (TILE_Y + SIZE - 1); i += THREADS) {
    const int y = y0 + i / pitch, x = x0 + i % pitch;
    if (y < height && x < width) image[i] = input[(size_t)y * width + x];
  }
#endif
#if SHARED || FILTER_SHARED
  barrier(CLK_LOCAL_MEM_FENCE);
#endif

  float sum[ITEMS_Y][ITEMS_X];
#pragma unroll
  for (int j = 0; j < ITEMS_Y; ++j)
#pragma unroll
    for (int i = 0; i < ITEMS_X; ++i) sum[j][i] = 0;
#pragma unroll 1
  for (int fy = 0; fy < SIZE; ++fy) {
#if FILTER
#pragma unroll
#else
#pragma unroll 1
#endif
    for (int fx = 0; fx < SIZE; ++fx) {
      const float weight = weights[fy * SIZE + fx];
#pragma unroll
      for (int j = 0; j < ITEMS_Y; ++j) {
#pragma unroll
        for (int i = 0; i < ITEMS_X; ++i) {
          const int dy = ROW(j) + fy, dx = COLUMN(i) + fx;
#if SHARED
          sum[j][i] += image[dy * pitch + dx] * weight;
#else
          if (y0 + dy < height && x0 + dx < width)
            sum[j][i] += input[(size_t)(y0 + dy) * width + x0 + dx] * weight;
#endif
        }
      }
    }
  }
#pragma unroll
  for (int j = 0; j < ITEMS_Y; ++j) {
#pragma unroll
    for (int i = 0; i < ITEMS_X; ++i) {
      const int y = y0 + ROW(j), x = x0 + COLUMN(i);
      if (y < Y && x < X) output[(size_t)y * X + x] = sum[j][i];
    }
  }
}
