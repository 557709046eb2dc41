// SPDX-License-Identifier: Apache-2.0
// One thread per row; Kahan's compensation keeps the error of the long sum to one rounding.
extern "C" __global__ void reduction_reference(const float* input, float* output, int R, int C) {
  const int row = blockIdx.x;
  float sum = 0, lost = 0;
  for (int i = 0; i < C; ++i) {
    const float term = input[(size_t)row * C + i] - lost;
    const float next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  output[row] = sum;
}
