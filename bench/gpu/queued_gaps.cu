// SPDX-License-Identifier: Apache-2.0
// Kernels of a known length behind a long one, so that the host is far ahead: what one of them takes
// in all, gap and all, by two events around them.
//
//   nvcc -std=c++17 -O2 -arch=sm_90 bench/gpu/queued_gaps.cu -o queued_gaps
//   queued_gaps BATCHES SPIN_NS...
//
// Prints {"spin_ns": N, "each_ns": [...]} for each: the time of each batch over its kernels.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

namespace {

__device__ unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void gate(unsigned long long ns) {
  for (const unsigned long long end = now_ns() + ns; now_ns() < end;) {
  }
}

__global__ void queued(unsigned long long ns) {
  for (const unsigned long long end = now_ns() + ns; now_ns() < end;) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kKernels = 800;  // a queue holds some thousand
  const int batches = argc > 1 ? std::atoi(argv[1]) : 10;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 2;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int arg = 2; arg < argc; ++arg) {
    const unsigned long long spin_ns = std::strtoull(argv[arg], nullptr, 10);
    std::printf("{\"spin_ns\": %llu, \"each_ns\": [", spin_ns);
    for (int batch = -1; batch < batches; ++batch) {  // the first warms up
      gate<<<1, 1, 0, stream>>>(15'000'000);
      queued<<<1, 32, 0, stream>>>(spin_ns);
      cudaEventRecord(begin, stream);
      for (int i = 0; i < kKernels; ++i) queued<<<1, 32, 0, stream>>>(spin_ns);
      cudaEventRecord(end, stream);
      if (cudaStreamSynchronize(stream) != cudaSuccess) return 3;
      float ms = 0;
      cudaEventElapsedTime(&ms, begin, end);
      if (batch >= 0) std::printf("%s%.1f", batch > 0 ? ", " : "", ms * 1e6 / kKernels);
    }
    std::printf("]}\n");
  }
}
