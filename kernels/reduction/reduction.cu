// SPDX-License-Identifier: Apache-2.0
// Sum of each row of an R x C matrix. The parameters are those of reduction.toml.

struct __align__(VECTOR * sizeof(float)) Vector {
  float element[VECTOR];
};

// Over the block; the result is thread 0's.
__device__ __forceinline__ float finish(float sum) {
  const int thread = threadIdx.x;
#if FINISH == 2
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  __shared__ float partial[BLOCK / 32];
  if (thread % 32 == 0) partial[thread / 32] = sum;
  __syncthreads();
  if (thread >= 32) return 0;
  sum = thread < BLOCK / 32 ? partial[thread] : 0;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  return sum;
#else
  __shared__ float partial[BLOCK];
  partial[thread] = sum;
#if FINISH == 1
  for (int offset = BLOCK / 2; offset > 0; offset /= 2) {
    __syncthreads();
    if (thread < offset) partial[thread] += partial[thread + offset];
  }
#else
  for (int offset = 1; offset < BLOCK; offset *= 2) {
    __syncthreads();
    if (thread % (2 * offset) == 0) partial[thread] += partial[thread + offset];
  }
#endif
  return partial[0];
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    reduction(const float* __restrict__ input, float* __restrict__ output, int R, int C) {
  const Vector* in = reinterpret_cast<const Vector*>(input + (size_t)blockIdx.x * C);
  const int count = C / VECTOR;
#if CHUNKED
  const int chunk = (count + BLOCK - 1) / BLOCK;
  const int end = min(count, ((int)threadIdx.x + 1) * chunk), step = 1;
  int i = threadIdx.x * chunk;
#else
  const int end = count, step = BLOCK;
  int i = threadIdx.x;
#endif
  float sums[ITEMS] = {};
  for (; i + (ITEMS - 1) * step < end; i += ITEMS * step) {
    Vector items[ITEMS];
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) items[j] = in[i + j * step];
#pragma unroll
    for (int j = 0; j < ITEMS; ++j)
#pragma unroll
      for (int v = 0; v < VECTOR; ++v) sums[j] += items[j].element[v];
  }
  for (; i < end; i += step) {
    const Vector item = in[i];
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) sums[0] += item.element[v];
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < ITEMS; ++j) sum += sums[j];
  sum = finish(sum);
  if (threadIdx.x == 0) output[blockIdx.x] = sum;
}
