// SPDX-License-Identifier: Apache-2.0
__kernel void transpose_reference(__global const float* input, __global float* output, int Y,
                                  int X) {
  const int y = get_global_id(1);
  const int x = get_global_id(0);
  if (y < Y && x < X) output[(size_t)x * Y + y] = input[(size_t)y * X + x];
}
