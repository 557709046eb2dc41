// SPDX-License-Identifier: Apache-2.0
__kernel void gemm_reference(__global const float* A, __global const float* B, __global float* C,
                             int M, int N, int K) {
  const int row = get_global_id(1);
  const int column = get_global_id(0);
  if (row >= M || column >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
  C[(size_t)row * N + column] = sum;
}
