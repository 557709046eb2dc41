// SPDX-License-Identifier: Apache-2.0
// Launches an empty kernel many times through the driver API and counts: what a full capture has to
// keep up with at its worst.
//
//   nvcc -std=c++17 -O2 -arch=sm_90 bench/gpu/launch_many.cu -o launch_many -ldl
//   launch_many LAUNCHES [BETWEEN_SYNCHRONISATIONS [STREAMS]]
//
// Prints {"launches": N, "seconds": S, "per_launch_us": U}: seconds of the loop, its last
// synchronisation included.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <vector>

__global__ void launch_many_kernel() {}

int main(int argc, char** argv) {
  const long launches = argc > 1 ? std::atol(argv[1]) : 1000000;
  const long between = argc > 2 ? std::atol(argv[2]) : 1000;
  const int count = argc > 3 ? std::atoi(argv[3]) : 1;
  cudaFunction_t function;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr || cudaFree(nullptr) != cudaSuccess ||
      cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&launch_many_kernel)) != cudaSuccess) {
    std::fprintf(stderr, "launch_many: no CUDA\n");
    return 2;
  }
  auto* const launch = reinterpret_cast<decltype(&cuLaunchKernel)>(dlsym(library, "cuLaunchKernel"));
  auto* const synchronize = reinterpret_cast<decltype(&cuStreamSynchronize)>(dlsym(library, "cuStreamSynchronize"));
  std::vector<cudaStream_t> streams(static_cast<std::size_t>(count));
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (int i = 0; i < 1000; ++i) launch(function, 1, 1, 1, 32, 1, 1, 0, streams[0], nullptr, nullptr);
  cudaDeviceSynchronize();
  long made = 1000;  // the warm-up is of the program too
  const auto begin = std::chrono::steady_clock::now();
  for (long i = 0; i < launches; ++i) {
    const cudaStream_t stream = streams[static_cast<std::size_t>(i % count)];
    made += launch(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr) == CUDA_SUCCESS ? 1 : 0;
    if ((i + 1) % between == 0) synchronize(stream);
  }
  cudaDeviceSynchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("{\"launches\": %ld, \"seconds\": %.6f, \"per_launch_us\": %.4f}\n", made, seconds,
              seconds / static_cast<double>(launches) * 1e6);
  return made == launches + 1000 ? 0 : 1;
}
