// SPDX-License-Identifier: Apache-2.0
// The program of cupti_detach.cc: cupti_detach_loop MODE SECONDS prints nanoseconds a launch, and
// ends with 3 where a call of CUDA fails. MODE: launch, copy, malloc, threads, graph.
// LOOP_PAUSE=1: it makes no call from 1.8 to 3.6 s.
//
//   nvcc -std=c++17 -O2 -arch=sm_90 bench/gpu/cupti_detach_loop.cu -o cupti_detach_loop
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <thread>
#include <utility>
#include <vector>

#define CHECK(call)                                                               \
  do {                                                                            \
    const cudaError_t error = (call);                                             \
    if (error != cudaSuccess) {                                                   \
      std::printf("FAILED %s: %s\n", #call, cudaGetErrorString(error));           \
      std::exit(3);                                                               \
    }                                                                             \
  } while (0)

__global__ void tiny(float* p) { p[threadIdx.x] += 1; }

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* const mode = argv[1];
  const double seconds = std::atof(argv[2]);
  const auto is = [&](const char* name) { return std::strcmp(mode, name) == 0; };
  cudaStream_t stream = nullptr;
  float *device = nullptr, *host = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&device, 4096));
  CHECK(cudaMallocHost(&host, 4096));
  CHECK(cudaMemset(device, 0, 4096));
  cudaGraphExec_t exec = nullptr;
  if (is("graph")) {
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 100; ++i) tiny<<<1, 32, 0, stream>>>(device);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
  }
  const auto launch = [&](int launches) {
    for (int i = 0; i < launches; ++i) {
      tiny<<<1, 32, 0, stream>>>(device);
      if (is("copy") && i % 10 == 0)
        CHECK(cudaMemcpyAsync(host, device, 256, cudaMemcpyDeviceToHost, stream));
      if (is("malloc") && i % 100 == 0) {
        void* more = nullptr;
        CHECK(cudaMalloc(&more, 1 << 20));
        CHECK(cudaFree(more));
      }
    }
  };
  const double begin = now();
  std::vector<std::pair<double, double>> samples;  // when, ns a launch
  while (now() - begin < seconds) {
    if (std::getenv("LOOP_PAUSE") != nullptr && now() - begin > 1.8 && now() - begin < 3.6)
      std::this_thread::sleep_for(std::chrono::milliseconds(1800));
    const double from = now();
    long made = 0;
    while (now() - from < 0.1) {
      if (exec != nullptr) {
        for (int i = 0; i < 10; ++i) CHECK(cudaGraphLaunch(exec, stream));
      } else if (is("threads")) {
        std::thread other([&] { launch(500); });
        launch(500);
        other.join();
      } else {
        launch(1000);
      }
      made += 1000;
      CHECK(cudaStreamSynchronize(stream));
    }
    samples.push_back({from - begin, (now() - from) / static_cast<double>(made) * 1e9});
  }
  const auto quarter = [&](double low, double high) {
    std::vector<double> some;
    for (const auto& [when, ns] : samples)
      if (when >= low && when < high) some.push_back(ns);
    std::sort(some.begin(), some.end());
    return some.empty() ? 0 : some[some.size() / 4];
  };
  std::printf("%s, ns a launch: %.0f recorded, %.0f at the end\n", mode, quarter(0.2, 0.9),
              quarter(seconds - 1.5, seconds));
}
