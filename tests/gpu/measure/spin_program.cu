// SPDX-License-Identifier: Apache-2.0
// The kernels of spin.toml under names of their own, launched thirty times each, for a profiler.
#include <cstdio>
#define SPIN(CYCLES)                                                      \
  __global__ void spin_##CYCLES(const float* x, float* out) {             \
    const long long start = clock64();                                    \
    while (clock64() - start < CYCLES) {                                  \
    }                                                                     \
    if (threadIdx.x == 0) out[blockIdx.x] = x[blockIdx.x];                \
  }
SPIN(500)
SPIN(2000)
SPIN(4000)
SPIN(8000)
SPIN(20000)
SPIN(60000)
SPIN(200000)
int main() {
  float *x, *out;
  cudaMalloc(&x, 132 * 4);
  cudaMalloc(&out, 132 * 4);
  cudaMemset(x, 0, 132 * 4);
  for (int i = 0; i < 3000; ++i) spin_200000<<<132, 128>>>(x, out);  // clocks up
  for (int i = 0; i < 30; ++i) {
    spin_500<<<132, 128>>>(x, out);
    spin_2000<<<132, 128>>>(x, out);
    spin_4000<<<132, 128>>>(x, out);
    spin_8000<<<132, 128>>>(x, out);
    spin_20000<<<132, 128>>>(x, out);
    spin_60000<<<132, 128>>>(x, out);
    spin_200000<<<132, 128>>>(x, out);
  }
  const cudaError_t done = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(done));
  return done == cudaSuccess ? 0 : 1;
}
