// SPDX-License-Identifier: Apache-2.0
// Sum of each row of an R x C matrix. The parameters are those of reduction.toml; reduction.cu is
// the same algorithm, but for the shuffles that OpenCL C 1.2 has not.

typedef struct __attribute__((aligned(4 * VECTOR))) {
  float element[VECTOR];
} Vector;

// Over the group; the result is work-item 0's.
inline float finish(float sum, __local float* partial) {
  const int thread = get_local_id(0);
  partial[thread] = sum;
#if FINISH == 2
  barrier(CLK_LOCAL_MEM_FENCE);
  if (thread % 32 == 0) {
    for (int i = 1; i < 32; ++i) sum += partial[thread + i];
    partial[thread] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (thread == 0)
    for (int i = 32; i < BLOCK; i += 32) sum += partial[i];
  return sum;
#else
#if FINISH == 1
  for (int offset = BLOCK / 2; offset > 0; offset /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (thread < offset) partial[thread] += partial[thread + offset];
  }
#else
  for (int offset = 1; offset < BLOCK; offset *= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (thread % (2 * offset) == 0) partial[thread] += partial[thread + offset];
  }
#endif
  return partial[0];
#endif
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void reduction(
    __global const float* restrict input, __global float* restrict output, int R, int C) {
  __local float partial[BLOCK];
  const int thread = get_local_id(0);
  __global const Vector* in = (__global const Vector*)(input + (size_t)get_group_id(0) * C);
  const int count = C / VECTOR;
#if CHUNKED
  const int chunk = (count + BLOCK - 1) / BLOCK;
  const int end = min(count, (thread + 1) * chunk), step = 1;
  int i = thread * chunk;
#else
  const int end = count, step = BLOCK;
  int i = thread;
#endif
  float sums[ITEMS];
#pragma unroll
  for (int j = 0; j < ITEMS; ++j) sums[j] = 0;
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
  sum = finish(sum, partial);
  if (thread == 0) output[get_group_id(0)] = sum;
}
