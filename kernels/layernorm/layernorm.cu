// SPDX-License-Identifier: Apache-2.0
// Layer normalisation of each row of an R x C matrix. The parameters are those of layernorm.toml.

#define THREADS (BLOCK / ROWS)  // of one row; a power of two
#define WIDTH (THREADS < 32 ? THREADS : 32)
#define WARPS (THREADS / WIDTH)
#define TRIP (THREADS * ITEMS)  // elements of a row taken at a time
#define EPSILON 1e-5f

struct __align__(VECTOR * sizeof(float)) Vector {
  float element[VECTOR];
};

__device__ __forceinline__ Vector load(const float* address) {
  return *reinterpret_cast<const Vector*>(address);
}

// Over the threads of one row; every thread of the block must call it, each gets the result.
__device__ __forceinline__ float reduce_sum(float value) {
#pragma unroll
  for (int offset = WIDTH / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  if (WARPS > 1) {
    __shared__ float partial[ROWS * WARPS];
    const int row = threadIdx.x / THREADS, warp = threadIdx.x % THREADS / WIDTH;
    __syncthreads();  // the last use of partial is over
    if (threadIdx.x % WIDTH == 0) partial[row * WARPS + warp] = value;
    __syncthreads();
    value = 0;
#pragma unroll
    for (int i = 0; i < WARPS; ++i) value += partial[row * WARPS + i];
  }
  return value;
}

// Place in the row of this thread's vector i of a trip.
__device__ __forceinline__ int position(int base, int i) {
  return base + (i * THREADS + threadIdx.x % THREADS) * VECTOR;
}

// This thread's elements of the trip that starts at `base`; elements past the row stay unchanged.
__device__ __forceinline__ void load_trip(const float* __restrict__ in, int base, int count,
                                          Vector (&items)[ITEMS / VECTOR]) {
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i)
    if (position(base, i) < count) items[i] = load(in + position(base, i));
}

__device__ __forceinline__ void write_trip(const Vector (&items)[ITEMS / VECTOR],
                                           const float* __restrict__ gamma,
                                           const float* __restrict__ beta, float mean, float scale,
                                           int base, int count, float* __restrict__ out) {
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i) {
    const int index = position(base, i);
    if (index >= count) continue;
    const Vector factor = load(gamma + index), shift = load(beta + index);
    Vector result;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
      result.element[v] =
          (items[i].element[v] - mean) * scale * factor.element[v] + shift.element[v];
    *reinterpret_cast<Vector*>(out + index) = result;
  }
}

__device__ __forceinline__ float sum_trip(const Vector (&items)[ITEMS / VECTOR], int base,
                                          int count) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i) {
    if (position(base, i) >= count) continue;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) sum += items[i].element[v];
  }
  return sum;
}

__device__ __forceinline__ float squares_trip(const Vector (&items)[ITEMS / VECTOR], float mean,
                                              int base, int count) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i) {
    if (position(base, i) >= count) continue;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
      const float deviation = items[i].element[v] - mean;
      sum += deviation * deviation;
    }
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    layernorm(const float* __restrict__ input, const float* __restrict__ gamma,
              const float* __restrict__ beta, float* __restrict__ output, int R, int C) {
  const int row = blockIdx.x * ROWS + threadIdx.x / THREADS;
  const int count = row < R ? C : 0;  // threads without a row still take part in reduce_sum()
  const float* in = input + (size_t)row * C;
  float* out = output + (size_t)row * C;
  Vector items[ITEMS / VECTOR];
  float mean, squares = 0;  // squares: sum of the squared deviations from the mean

#if PASSES == 3
  float sum = 0;
  for (int base = 0; base < C; base += TRIP) {
    load_trip(in, base, count, items);
    sum += sum_trip(items, base, count);
  }
  mean = reduce_sum(sum) / C;
  for (int base = 0; base < C; base += TRIP) {
    load_trip(in, base, count, items);
    squares += squares_trip(items, mean, base, count);
  }
  squares = reduce_sum(squares);
#elif PASSES == 2
  // Welford: mean and squares of what this thread has seen, then of all threads (Chan).
  float seen = 0, own_mean = 0;
  for (int base = 0; base < C; base += TRIP) {
    load_trip(in, base, count, items);
#pragma unroll
    for (int i = 0; i < ITEMS / VECTOR; ++i) {
      if (position(base, i) >= count) continue;
#pragma unroll
      for (int v = 0; v < VECTOR; ++v) {
        seen += 1;
        const float deviation = items[i].element[v] - own_mean;
        own_mean += deviation / seen;
        squares += deviation * (items[i].element[v] - own_mean);
      }
    }
  }
  mean = reduce_sum(own_mean * seen) / C;
  squares = reduce_sum(squares + seen * (own_mean - mean) * (own_mean - mean));
#else
  load_trip(in, 0, count, items);
  mean = reduce_sum(sum_trip(items, 0, count)) / C;
  squares = reduce_sum(squares_trip(items, mean, 0, count));
#endif

  const float scale = rsqrtf(squares / C + EPSILON);
#if PASSES == 1
  write_trip(items, gamma, beta, mean, scale, 0, count, out);
#else
  for (int base = 0; base < C; base += TRIP) {
    load_trip(in, base, count, items);
    write_trip(items, gamma, beta, mean, scale, base, count, out);
  }
#endif
}
