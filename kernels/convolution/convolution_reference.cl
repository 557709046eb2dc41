// SPDX-License-Identifier: Apache-2.0
__kernel void convolution_reference(__global const float* input, __global const float* filter,
                                    __global float* output, int Y, int X, int F) {
  const int y = get_global_id(1);
  const int x = get_global_id(0);
  if (y >= Y || x >= X) return;
  float sum = 0;
  for (int fy = 0; fy < F; ++fy)
    for (int fx = 0; fx < F; ++fx)
      sum += input[(size_t)(y + fy) * (X + F - 1) + x + fx] * filter[fy * F + fx];
  output[(size_t)y * X + x] = sum;
}
