// SPDX-License-Identifier: Apache-2.0
__kernel void elementwise_reference(__global const float* x, __global const float* bias,
                                    __global const float* residual, __global float* out, int R,
                                    int C) {
  const int row = get_global_id(1);
  const int column = get_global_id(0);
  if (row >= R || column >= C) return;
  const size_t i = (size_t)row * C + column;
  const float v = x[i] + bias[column];
  const float gelu = 0.5f * v * (1.0f + tanh(0.7978845608f * (v + 0.044715f * v * v * v)));
  out[i] = gelu + residual[i];
}
