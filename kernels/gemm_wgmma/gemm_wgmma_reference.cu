// SPDX-License-Identifier: Apache-2.0
// A bf16 is the upper half of a float.
typedef unsigned short bf16;

__device__ float to_float(bf16 value) { return __uint_as_float((unsigned)value << 16); }

// To the nearest bf16, halves to even.
__device__ bf16 to_bf16(float value) {
  const unsigned bits = __float_as_uint(value);
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

__device__ float element(const bf16* A, const bf16* B, int row, int column, int K) {
  float sum = 0;
  for (int k = 0; k < K; ++k)
    sum += to_float(A[(size_t)row * K + k]) * to_float(B[(size_t)column * K + k]);
  return sum;
}

extern "C" __global__ void gemm_wgmma_reference(const bf16* A, const bf16* B, bf16* C, int M, int N,
                                                int K) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < M && column < N) C[(size_t)row * N + column] = to_bf16(element(A, B, row, column, K));
}

extern "C" __global__ void linear_relu_reference(const bf16* A, const bf16* B, const bf16* bias,
                                                 bf16* C, int M, int N, int K) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || column >= N) return;
  const float sum = element(A, B, row, column, K) + to_float(bias[column]);
  C[(size_t)row * N + column] = to_bf16(fmaxf(sum, 0.0f));
}
