// SPDX-License-Identifier: Apache-2.0
// One thread per row; Kahan's compensation keeps the error of the long sum to one rounding.
__kernel void reduction_reference(__global const float* input, __global float* output, int R,
                                  int C) {
  const int row = get_group_id(0);
  float sum = 0, lost = 0;
  for (int i = 0; i < C; ++i) {
    const float term = input[(size_t)row * C + i] - lost;
    const float next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  output[row] = sum;
}
