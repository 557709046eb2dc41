// SPDX-License-Identifier: Apache-2.0
// Launches an empty kernel many times through the driver API and counts: what a full capture has to
// keep up with at its worst.
//
//   nvcc -std=c++17 -O2 -arch=sm_90 bench/gpu/launch_many.cu -o launch_many -ldl
//   launch_many LAUNCHES [BETWEEN_SYNCHRONISATIONS [STREAMS]]
//
// Prints {"launches": N, "seconds": S, "per_launch_us": U}: seconds of the loop, its last
// synchronisation included. With `-` for LAUNCHES it is a player of turns.py: it says "ready", makes as
// many launches as each line of its input says, answers with their seconds, and the sum at the end.
// LAUNCH_CPU is the processor that its own thread stays on, once CUDA has its threads.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sched.h>
#include <vector>

__global__ void launch_many_kernel() {}

namespace {

cudaFunction_t function;
decltype(&cuLaunchKernel) launch;
decltype(&cuStreamSynchronize) synchronize;
std::vector<cudaStream_t> streams;
long made = 0, between = 1000;

double loop(long launches) {
  const auto begin = std::chrono::steady_clock::now();
  for (long i = 0; i < launches; ++i) {
    const cudaStream_t stream = streams[static_cast<std::size_t>(i) % streams.size()];
    made += launch(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr) == CUDA_SUCCESS ? 1 : 0;
    if ((i + 1) % between == 0) synchronize(stream);
  }
  cudaDeviceSynchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  const bool player = argc > 1 && std::strcmp(argv[1], "-") == 0;
  const long launches = argc > 1 ? std::atol(argv[1]) : 1000000;
  if (argc > 2) between = std::atol(argv[2]);
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr || cudaFree(nullptr) != cudaSuccess ||
      cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&launch_many_kernel)) != cudaSuccess) {
    std::fprintf(stderr, "launch_many: no CUDA\n");
    return 2;
  }
  if (const char* cpu = std::getenv("LAUNCH_CPU")) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(std::atoi(cpu), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  launch = reinterpret_cast<decltype(launch)>(dlsym(library, "cuLaunchKernel"));
  synchronize = reinterpret_cast<decltype(synchronize)>(dlsym(library, "cuStreamSynchronize"));
  streams.resize(static_cast<std::size_t>(argc > 3 ? std::atoi(argv[3]) : 1));
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  long asked = 1000;  // the warm-up is of the program too
  loop(1000);
  double seconds = 0;
  if (player) {
    std::printf("ready\n");
    std::fflush(stdout);
    for (long count = 0; std::scanf("%ld", &count) == 1; asked += count) {
      std::printf("{\"seconds\": %.9f}\n", loop(count));
      std::fflush(stdout);
    }
  } else {
    seconds = loop(launches);
    asked += launches;
  }
  std::printf("{\"launches\": %ld, \"seconds\": %.6f, \"per_launch_us\": %.4f}\n", made, seconds,
              seconds / static_cast<double>(launches > 0 ? launches : 1) * 1e6);
  return made == asked ? 0 : 1;
}
