// SPDX-License-Identifier: Apache-2.0
__kernel void softmax_reference(__global const float* input, __global float* output, int R, int C) {
  const int row = get_global_id(0);
  if (row >= R) return;
  __global const float* in = input + (size_t)row * C;
  __global float* out = output + (size_t)row * C;
  float maximum = in[0];
  for (int i = 1; i < C; ++i) maximum = fmax(maximum, in[i]);
  float sum = 0;
  for (int i = 0; i < C; ++i) sum += exp(in[i] - maximum);
  for (int i = 0; i < C; ++i) out[i] = exp(in[i] - maximum) / sum;
}
