// SPDX-License-Identifier: Apache-2.0
// A bf16 is the upper half of a float.
extern "C" __global__ void gemm_bf16_reference(const unsigned short* A, const unsigned short* B,
                                               float* C, int M, int N, int K) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || column >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) {
    const float a = __uint_as_float((unsigned)A[(size_t)row * K + k] << 16);
    const float b = __uint_as_float((unsigned)B[(size_t)k * N + column] << 16);
    sum += a * b;
  }
  C[(size_t)row * N + column] = sum;
}
