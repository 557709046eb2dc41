// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void softmax_reference(const float* input, float* output, int R, int C) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= R) return;
  const float* in = input + (size_t)row * C;
  float* out = output + (size_t)row * C;
  float maximum = in[0];
  for (int i = 1; i < C; ++i) maximum = fmaxf(maximum, in[i]);
  float sum = 0;
  for (int i = 0; i < C; ++i) sum += expf(in[i] - maximum);
  for (int i = 0; i < C; ++i) out[i] = expf(in[i] - maximum) / sum;
}
