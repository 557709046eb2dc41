// SPDX-License-Identifier: Apache-2.0
// Layer normalisation of each row of an R x C matrix. The parameters are those of layernorm.toml;
// layernorm.cu is the same algorithm.

#define THREADS (BLOCK / ROWS)  // of one row; a power of two
#define TRIP (THREADS * ITEMS)  // elements of a row taken at a time
#define EPSILON 1e-5f

typedef struct __attribute__((aligned(4 * VECTOR))) {
  float element[VECTOR];
} Vector;

inline Vector load(__global const float* address) { return *(__global const Vector*)address; }

// Over the work-items of one row, in a tree; every work-item of the group must call it.
inline float reduce_sum(float value, __local float* partial) {
  const int local_id = get_local_id(0);
  partial[local_id] = value;
  for (int offset = THREADS / 2; offset > 0; offset /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (local_id % THREADS < offset) partial[local_id] += partial[local_id + offset];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float result = partial[local_id / THREADS * THREADS];
  barrier(CLK_LOCAL_MEM_FENCE);  // partial may be used again
  return result;
}

// Place in the row of this thread's vector i of a trip.
inline int position(int base, int i) {
  return base + (i * THREADS + (int)get_local_id(0) % THREADS) * VECTOR;
}

// This thread's elements of the trip that starts at `base`; what lies past the row stays as it was.
inline void load_trip(__global const float* restrict in, int base, int count, Vector* items) {
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i)
    if (position(base, i) < count) items[i] = load(in + position(base, i));
}

inline void write_trip(const Vector* items, __global const float* restrict gamma,
                       __global const float* restrict beta, float mean, float scale, int base,
                       int count, __global float* restrict out) {
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
    *(__global Vector*)(out + index) = result;
  }
}

inline float sum_trip(const Vector* items, int base, int count) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < ITEMS / VECTOR; ++i) {
    if (position(base, i) >= count) continue;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) sum += items[i].element[v];
  }
  return sum;
}

inline float squares_trip(const Vector* items, float mean, int base, int count) {
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

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void layernorm(
    __global const float* restrict input, __global const float* restrict gamma,
    __global const float* restrict beta, __global float* restrict output, int R, int C) {
  __local float partial[BLOCK];
  const int row = get_group_id(0) * ROWS + get_local_id(0) / THREADS;
  const int count = row < R ? C : 0;  // work-items without a row still take part in reduce_sum()
  __global const float* in = input + (size_t)row * C;
  __global float* out = output + (size_t)row * C;
  Vector items[ITEMS / VECTOR];
  float mean, squares = 0;  // squares: sum of the squared deviations from the mean

#if PASSES == 3
  float sum = 0;
  for (int base = 0; base < C; base += TRIP) {
    load_trip(in, base, count, items);
    sum += sum_trip(items, base, count);
  }
  mean = reduce_sum(sum, partial) / C;
  for (int base = 0; base < C; base += TRIP) {
    load_trip(in, base, count, items);
    squares += squares_trip(items, mean, base, count);
  }
  squares = reduce_sum(squares, partial);
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
  mean = reduce_sum(own_mean * seen, partial) / C;
  squares = reduce_sum(squares + seen * (own_mean - mean) * (own_mean - mean), partial);
#else
  load_trip(in, 0, count, items);
  mean = reduce_sum(sum_trip(items, 0, count), partial) / C;
  squares = reduce_sum(squares_trip(items, mean, 0, count), partial);
#endif

  const float scale = rsqrt(squares / C + EPSILON);
#if PASSES == 1
  write_trip(items, gamma, beta, mean, scale, 0, count, out);
#else
  for (int base = 0; base < C; base += TRIP) {
    load_trip(in, base, count, items);
    write_trip(items, gamma, beta, mean, scale, base, count, out);
  }
#endif
}
