// SPDX-License-Identifier: Apache-2.0
// out = gelu(x + bias) + residual. The parameters are those of elementwise.toml.

struct __align__(VECTOR * sizeof(float)) Vector {
  float element[VECTOR];
};

// 0.5 v (1 + tanh(u)) = v / (1 + exp(-2 u)), u = sqrt(2 / pi) (v + 0.044715 v^3).
__device__ __forceinline__ float gelu(float v) {
  const float minus_2u = -1.5957691216f * (v + 0.044715f * v * v * v);
#if NATIVE
  return __fdividef(v, 1.0f + __expf(minus_2u));
#else
  return v / (1.0f + expf(minus_2u));
#endif
}

__device__ __forceinline__ Vector load(const float* address) {
  return *reinterpret_cast<const Vector*>(address);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    elementwise(const float* __restrict__ x, const float* __restrict__ bias,
                const float* __restrict__ residual, float* __restrict__ out, int R, int C) {
  // All loads first, so that they are in flight together.
  Vector a[ITEMS], b[ITEMS], r[ITEMS];
  unsigned index[ITEMS];
  bool inside[ITEMS];
#if FLAT
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    index[i] = ((blockIdx.x * ITEMS + i) * BLOCK + threadIdx.x) * VECTOR;
    inside[i] = index[i] < (unsigned)R * C;
    if (inside[i]) b[i] = load(bias + index[i] % C);
  }
#else
  const int column = (blockIdx.x * BLOCK + threadIdx.x) * VECTOR;
  if (column >= C) return;
  const Vector column_bias = load(bias + column);
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int row = blockIdx.y * ITEMS + i;
    index[i] = (unsigned)row * C + column;
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
    *reinterpret_cast<Vector*>(out + index[i]) = result;
  }
}
