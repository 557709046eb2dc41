// SPDX-License-Identifier: Apache-2.0
// Stable softmax of each row of an R x C matrix. The parameters are those of softmax.toml.

#define THREADS (BLOCK / ROWS)  // of one row; a power of two
#define WIDTH (THREADS < 32 ? THREADS : 32)
#define WARPS (THREADS / WIDTH)
#define TRIP (THREADS * ITEMS)  // elements of a row taken at a time
#define LOWEST (-3.402823466e+38f)

struct __align__(VECTOR * sizeof(float)) Vector {
  float element[VECTOR];
};

struct Maximum {
  __device__ static float apply(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
  __device__ static float apply(float a, float b) { return a + b; }
};

// Over the threads of one row; every thread of the block must call it, each gets the result.
template <class Operation>
__device__ __forceinline__ float reduce(float value) {
#pragma unroll
  for (int offset = WIDTH / 2; offset > 0; offset /= 2)
    value = Operation::apply(value, __shfl_xor_sync(0xffffffffu, value, offset));
  if (WARPS > 1) {
    __shared__ float partial[ROWS * WARPS];
    const int row = threadIdx.x / THREADS, warp = threadIdx.x % THREADS / WIDTH;
    __syncthreads();  // the last use of partial is over
    if (threadIdx.x % WIDTH == 0) partial[row * WARPS + warp] = value;
    __syncthreads();
    value = partial[row * WARPS];
#pragma unroll
    for (int i = 1; i < WARPS; ++i) value = Operation::apply(value, partial[row * WARPS + i]);
  }
  return value;
}

// This thread's elements of the trip that starts at `base`; `fill` where the row has ended.
__device__ __forceinline__ void load(const float* __restrict__ in, int base, int count, float fill,
                                     float (&items)[ITEMS]) {
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i) {
    const int index = base + (i * THREADS + threadIdx.x % THREADS) * VECTOR;
    Vector vector;
    if (index < count) vector = *reinterpret_cast<const Vector*>(in + index);
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
      items[i * VECTOR + v] = index < count ? vector.element[v] : fill;
  }
}

__device__ __forceinline__ void store(float* __restrict__ out, int base, int count,
                                      const float (&items)[ITEMS]) {
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i) {
    const int index = base + (i * THREADS + threadIdx.x % THREADS) * VECTOR;
    Vector vector;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) vector.element[v] = items[i * VECTOR + v];
    if (index < count) *reinterpret_cast<Vector*>(out + index) = vector;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    softmax(const float* __restrict__ input, float* __restrict__ output, int R, int C) {
  const int row = blockIdx.x * ROWS + threadIdx.x / THREADS;
  const int count = row < R ? C : 0;  // threads without a row still take part in reduce()
  const float* in = input + (size_t)row * C;
  float* out = output + (size_t)row * C;
  float items[ITEMS];
  float maximum = LOWEST, sum = 0;

#if PASSES == 3
  for (int base = 0; base < C; base += TRIP) {
    load(in, base, count, LOWEST, items);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) maximum = fmaxf(maximum, items[i]);
  }
  maximum = reduce<Maximum>(maximum);
  for (int base = 0; base < C; base += TRIP) {
    load(in, base, count, LOWEST, items);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) sum += items[i] == LOWEST ? 0.0f : expf(items[i] - maximum);
  }
#elif PASSES == 2
  // The sum is kept relative to the maximum so far and rescaled when that grows.
  for (int base = 0; base < C; base += TRIP) {
    load(in, base, count, LOWEST, items);
    float highest = maximum;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) highest = fmaxf(highest, items[i]);
    sum *= expf(maximum - highest);
    maximum = highest;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) sum += items[i] == LOWEST ? 0.0f : expf(items[i] - maximum);
  }
  const float highest = reduce<Maximum>(maximum);
  sum *= expf(maximum - highest);
  maximum = highest;
#else
  load(in, 0, count, LOWEST, items);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) maximum = fmaxf(maximum, items[i]);
  maximum = reduce<Maximum>(maximum);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    items[i] = items[i] == LOWEST ? 0.0f : expf(items[i] - maximum);
    sum += items[i];
  }
#endif

  const float scale = 1.0f / reduce<Sum>(sum);
#if PASSES == 1
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) items[i] *= scale;
  store(out, 0, count, items);
#else
  for (int base = 0; base < C; base += TRIP) {
    load(in, base, count, LOWEST, items);
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) items[i] = expf(items[i] - maximum) * scale;
    store(out, base, count, items);
  }
#endif
}
