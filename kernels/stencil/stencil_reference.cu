// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void stencil_reference(const float* input, float* output, float c0, float c1,
                                             int Z, int Y, int X) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z;
  if (x >= X || y >= Y) return;
  const size_t row = X, plane = (size_t)X * Y;
  const size_t i = z * plane + y * row + x;
  if (x == 0 || x == X - 1 || y == 0 || y == Y - 1 || z == 0 || z == Z - 1) {
    output[i] = input[i];
  } else {
    output[i] = c0 * input[i] + c1 * (input[i - 1] + input[i + 1] + input[i - row] +
                                      input[i + row] + input[i - plane] + input[i + plane]);
  }
}
