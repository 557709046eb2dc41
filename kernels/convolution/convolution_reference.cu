// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void convolution_reference(const float* input, const float* filter,
                                                 float* output, int Y, int X, int F) {
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= Y || x >= X) return;
  float sum = 0;
  for (int fy = 0; fy < F; ++fy)
    for (int fx = 0; fx < F; ++fx)
      sum += input[(size_t)(y + fy) * (X + F - 1) + x + fx] * filter[fy * F + fx];
  output[(size_t)y * X + x] = sum;
}
