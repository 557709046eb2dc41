// SPDX-License-Identifier: Apache-2.0
// 2D convolution of a padded image with an F x F filter. The parameters are those of
// convolution.toml.

#define TILE_X (BLOCK_X * ITEMS_X)
#define TILE_Y (BLOCK_Y * ITEMS_Y)
#define THREADS (BLOCK_X * BLOCK_Y)
#define LARGEST_FILTER 17

#if FILTER
#define SIZE FILTER  // known to the compiler, which unrolls the filter's rows
constexpr int kUnroll = FILTER;
#else
#define SIZE F
constexpr int kUnroll = 1;
#endif

#if ADJACENT
#define COLUMN(i) (threadIdx.x * ITEMS_X + (i))
#else
#define COLUMN(i) (threadIdx.x + (i)*BLOCK_X)
#endif
#define ROW(j) (threadIdx.y + (j)*BLOCK_Y)

extern "C" __global__ void __launch_bounds__(THREADS)
    convolution(const float* __restrict__ input, const float* __restrict__ filter,
                float* __restrict__ output, int Y, int X, int F) {
  const int x0 = blockIdx.x * TILE_X, y0 = blockIdx.y * TILE_Y;
  const int width = X + SIZE - 1, height = Y + SIZE - 1;
#if SHARED || FILTER_SHARED
  const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
#endif
#if FILTER_SHARED
  __shared__ float weights[FILTER ? FILTER * FILTER : LARGEST_FILTER * LARGEST_FILTER];
  for (int i = thread; i < SIZE * SIZE; i += THREADS) weights[i] = filter[i];
#else
  const float* weights = filter;
#endif
#if SHARED
  const int pitch = TILE_X + SIZE - 1;
  __shared__ float image[(TILE_Y + SIZE - 1) * (TILE_X + SIZE - 1)];
  for (int i = thread; i < pitch * (TILE_Y + SIZE - 1); i += THREADS) {
    const int y = y0 + i / pitch, x = x0 + i % pitch;
    if (y < height && x < width) image[i] = input[(size_t)y * width + x];
  }
#endif
#if SHARED || FILTER_SHARED
  __syncthreads();
#endif

  float sum[ITEMS_Y][ITEMS_X] = {};
#pragma unroll 1
  for (int fy = 0; fy < SIZE; ++fy) {
#pragma unroll kUnroll
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
