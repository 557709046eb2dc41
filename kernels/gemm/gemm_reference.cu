// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void gemm_reference(const float* A, const float* B, float* C, int M, int N,
                                          int K) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M || column >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
  C[(size_t)row * N + column] = sum;
}
