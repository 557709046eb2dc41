// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void elementwise_reference(const float* x, const float* bias,
                                                 const float* residual, float* out, int R, int C) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= R || column >= C) return;
  const size_t i = (size_t)row * C + column;
  const float v = x[i] + bias[column];
  const float gelu = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
  out[i] = gelu + residual[i];
}
