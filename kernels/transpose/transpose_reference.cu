// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void transpose_reference(const float* input, float* output, int Y, int X) {
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (y < Y && x < X) output[(size_t)x * Y + y] = input[(size_t)y * X + x];
}
