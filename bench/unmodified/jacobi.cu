// SPDX-License-Identifier: Apache-2.0
// A Jacobi solver as a textbook writes it: a stencil, its residual, and a look at the residual every
// 20 iterations. No profiler code. jacobi [ITERATIONS]: prints the time of 20 iterations by its own
// clock.
//
//   nvcc -O3 -arch=sm_90 -o jacobi jacobi.cu
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kN = 2048, kEach = 20;

__global__ void relax(const float* from, float* to) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= kN - 1 || y >= kN - 1) return;
  const int at = y * kN + x;
  to[at] = 0.25f * (from[at - 1] + from[at + 1] + from[at - kN] + from[at + kN]);
}

__global__ void residual(const float* a, const float* b, float* sum) {
  float mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kN * kN; i += gridDim.x * blockDim.x)
    mine += (a[i] - b[i]) * (a[i] - b[i]);
  atomicAdd(sum, mine);
}

int main(int argc, char** argv) {
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 100'000;
  float *a, *b, *sum, host = 0;
  cudaMalloc(&a, sizeof(float) * kN * kN);
  cudaMalloc(&b, sizeof(float) * kN * kN);
  cudaMalloc(&sum, sizeof(float));
  std::vector<float> start(std::size_t{kN} * kN, 0);
  std::fill(start.begin(), start.begin() + kN, 1.f);
  cudaMemcpy(a, start.data(), sizeof(float) * kN * kN, cudaMemcpyHostToDevice);
  cudaMemcpy(b, start.data(), sizeof(float) * kN * kN, cudaMemcpyHostToDevice);
  const dim3 block(32, 8), grid(kN / 32, kN / 8);
  std::vector<double> times;
  auto begin = std::chrono::steady_clock::now();
  for (int i = 1; i <= iterations; ++i) {
    relax<<<grid, block>>>(a, b);
    std::swap(a, b);
    if (i % kEach != 0) continue;
    cudaMemset(sum, 0, sizeof(float));
    residual<<<264, 256>>>(a, b, sum);
    cudaMemcpy(&host, sum, sizeof(float), cudaMemcpyDeviceToHost);
    const auto now = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(now - begin).count());
    begin = now;
  }
  std::sort(times.begin(), times.end());
  std::printf("step_ms %.4f residual %.3e\n", times[times.size() / 2], host);
}
