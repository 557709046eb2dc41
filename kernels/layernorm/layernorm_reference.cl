// SPDX-License-Identifier: Apache-2.0
__kernel void layernorm_reference(__global const float* input, __global const float* gamma,
                                  __global const float* beta, __global float* output, int R,
                                  int C) {
  const int row = get_global_id(0);
  if (row >= R) return;
  __global const float* in = input + (size_t)row * C;
  __global float* out = output + (size_t)row * C;
  float mean = 0;
  for (int i = 0; i < C; ++i) mean += in[i];
  mean /= C;
  float variance = 0;
  for (int i = 0; i < C; ++i) variance += (in[i] - mean) * (in[i] - mean);
  variance /= C;
  for (int i = 0; i < C; ++i) out[i] = (in[i] - mean) / sqrt(variance + 1e-5f) * gamma[i] + beta[i];
}
