// SPDX-License-Identifier: Apache-2.0
// Stable softmax of each row of an R x C matrix. The parameters are those of softmax.toml;
// softmax.cu is the same algorithm.

#define THREADS (BLOCK / ROWS)  // of one row; a power of two
#define TRIP (THREADS * ITEMS)  // elements of a row taken at a time
#define LOWEST (-3.402823466e+38f)

typedef struct __attribute__((aligned(4 * VECTOR))) {
  float element[VECTOR];
} Vector;

// Over the work-items of one row, in a tree; every work-item of the group must call it.
inline float reduce_maximum(float value, __local float* partial) {
  const int local_id = get_local_id(0);
  partial[local_id] = value;
  for (int offset = THREADS / 2; offset > 0; offset /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (local_id % THREADS < offset)
      partial[local_id] = fmax(partial[local_id], partial[local_id + offset]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float result = partial[local_id / THREADS * THREADS];
  barrier(CLK_LOCAL_MEM_FENCE);  // partial may be used again
  return result;
}

inline float reduce_sum(float value, __local float* partial) {
  const int local_id = get_local_id(0);
  partial[local_id] = value;
  for (int offset = THREADS / 2; offset > 0; offset /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (local_id % THREADS < offset) partial[local_id] += partial[local_id + offset];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float result = partial[local_id / THREADS * THREADS];
  barrier(CLK_LOCAL_MEM_FENCE);
  return result;
}

// This work-item's elements of the trip that starts at `base`; `fill` where the row has ended.
inline void load(__global const float* restrict in, int base, int count, float fill, float* items) {
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i) {
    const int index = base + (i * THREADS + (int)get_local_id(0) % THREADS) * VECTOR;
    Vector vector;
    if (index < count) vector = *(__global const Vector*)(in + index);
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
      items[i * VECTOR + v] = index < count ? vector.element[v] : fill;
  }
}

inline void store(__global float* restrict out, int base, int count, const float* items) {
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i) {
    const int index = base + (i * THREADS + (int)get_local_id(0) % THREADS) * VECTOR;
    Vector vector;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) vector.element[v] = items[i * VECTOR + v];
    if (index < count) *(__global Vector*)(out + index) = vector;
  }
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void softmax(
    __global const float* restrict input, __global float* restrict output, int R, int C) {
  __local float partial[BLOCK];
  const int row = get_group_id(0) * ROWS + get_local_id(0) / THREADS;
  const int count = row < R ? C : 0;  // work-items without a row still take part in the reductions
  __global const float* in = input + (size_t)row * C;
  __global float* out = output + (size_t)row * C;
  float items[ITEMS];
  float maximum = LOWEST, sum = 0;

#if PASSES == 3
  for (int base = 0; base < C; base += TRIP) {
    load(in, base, count, LOWEST, items);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) maximum = fmax(maximum, items[i]);
  }
  maximum = reduce_maximum(maximum, partial);
  for (int base = 0; base < C; base += TRIP) {
    load(in, base, count, LOWEST, items);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) sum += items[i] == LOWEST ? 0.0f : exp(items[i] - maximum);
  }
#elif PASSES == 2
  // The sum is kept relative to the maximum so far and rescaled when that grows.
  for (int base = 0; base < C; base += TRIP) {
    load(in, base, count, LOWEST, items);
    float highest = maximum;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) highest = fmax(highest, items[i]);
    sum *= exp(maximum - highest);
    maximum = highest;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) sum += items[i] == LOWEST ? 0.0f : exp(items[i] - maximum);
  }
  const float highest = reduce_maximum(maximum, partial);
  sum *= exp(maximum - highest);
  maximum = highest;
#else
  load(in, 0, count, LOWEST, items);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) maximum = fmax(maximum, items[i]);
  maximum = reduce_maximum(maximum, partial);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    items[i] = items[i] == LOWEST ? 0.0f : exp(items[i] - maximum);
    sum += items[i];
  }
#endif

  const float scale = 1.0f / reduce_sum(sum, partial);
#if PASSES == 1
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) items[i] *= scale;
  store(out, 0, count, items);
#else
  for (int base = 0; base < C; base += TRIP) {
    load(in, base, count, LOWEST, items);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) items[i] = exp(items[i] - maximum) * scale;
    store(out, base, count, items);
  }
#endif
}
