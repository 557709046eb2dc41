// SPDX-License-Identifier: Apache-2.0
// One block for each row of Q. A bf16 is the upper half of a float.
typedef unsigned short bf16;

#ifndef CAUSAL
#define CAUSAL 0
#endif

__device__ float to_float(bf16 value) { return __uint_as_float((unsigned)value << 16); }

// To the nearest bf16, halves to even.
__device__ bf16 to_bf16(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

extern "C" __global__ void attention_reference(const bf16* Q, const bf16* K, const bf16* V, bf16* O,
                                               int S, int D) {
  extern __shared__ float weights[];
  const size_t head = (size_t)blockIdx.y * S * D;
  const int row = blockIdx.x, keys = CAUSAL ? row + 1 : S;
  const bf16* q = Q + head + (size_t)row * D;
  for (int key = threadIdx.x; key < keys; key += blockDim.x) {
    const bf16* k = K + head + (size_t)key * D;
    float sum = 0;
    for (int i = 0; i < D; ++i) sum += to_float(q[i]) * to_float(k[i]);
    weights[key] = sum * rsqrtf((float)D);
  }
  __syncthreads();
  float largest = weights[0], total = 0;
  for (int key = 1; key < keys; ++key) largest = fmaxf(largest, weights[key]);
  for (int key = 0; key < keys; ++key) total += expf(weights[key] - largest);
  for (int i = threadIdx.x; i < D; i += blockDim.x) {
    float sum = 0;
    for (int key = 0; key < keys; ++key)
      sum += expf(weights[key] - largest) * to_float(V[head + (size_t)key * D + i]);
    O[head + (size_t)row * D + i] = to_bf16(sum / total);
  }
}
