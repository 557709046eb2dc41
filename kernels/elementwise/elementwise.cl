// SPDX-License-Identifier: Apache-2.0
// out = gelu(x + bias) + residual. The parameters are those of elementwise.toml; elementwise.cu is
// the same algorithm.

typedef struct __attribute__((aligned(4 * VECTOR))) {
  float element[VECTOR];
} Vector;

// 0.5 v (1 + tanh(u)) = v / (1 + exp(-2 u)), u = sqrt(2 / pi) (v + 0.044715 v^3).
inline float gelu(float v) {
  const float minus_2u = -1.5957691216f * (v + 0.044715f * v * v * v);
#if NATIVE
  return native_divide(v, 1.0f + native_exp(minus_2u));
#else
  return v / (1.0f + exp(minus_2u));
#endif
}

inline Vector load(__global const float* address) { return *(__global const Vector*)address; }

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void elementwise(
    __global const float* restrict x, __global const float* restrict bias,
    __global const float* restrict residual, __global float* restrict out, int R, int C) {
  // All loads first, so that they are in flight together.
  Vector a[ITEMS], b[ITEMS], r[ITEMS];
  uint index[ITEMS];
  bool inside[ITEMS];
#if FLAT
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    index[i] = ((get_group_id(0) * ITEMS + i) * BLOCK + get_local_id(0)) * VECTOR;
    inside[i] = index[i] < (uint)R * C;
    if (inside[i]) b[i] = load(bias + index[i] % C);
  }
#else
  const int column = (get_group_id(0) * BLOCK + get_local_id(0)) * VECTOR;
  if (column >= C) return;
  const Vector column_bias = load(bias + column);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int row = get_group_id(1) * ITEMS + i;
    index[i] = (uint)row * C + column;
    inside[i] = row < R;
    b[i] = column_bias;
  }
#endif
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (!inside[i]) continue;
    a[i] = load(x + index[i]);
    r[i] = load(residual + index[i]);
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (!inside[i]) continue;
    Vector result;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
      result.element[v] = gelu(a[i].element[v] + b[i].element[v]) + r[i].element[v];
    *(__global Vector*)(out + index[i]) = result;
  }
}
