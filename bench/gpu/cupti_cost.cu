// SPDX-License-Identifier: Apache-2.0
// What CUPTI leaves behind in a program: ns per launch before it is touched, with the kernel kind
// on, and after it is off again; ns per node of CUDA graphs likewise. One process per mode and
// repetition, since CUPTI's state is the process's.
//
//   nvcc -O2 -std=c++20 -arch=sm_90 -o cupti_cost cupti_cost.cu -lcupti -lcuda
//   for i in 1 2 3 4 5; do for m in none early late before; do ./cupti_cost $m; done; done
//
// none: no CUPTI. early: callbacks registered before the context exists, kind on and off after it.
// late: both after. before: kind on before the context exists, off after a while, later on and off.
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr CUpti_ActivityKind kKind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
constexpr int kNodes = 100;

cudaStream_t stream;
float* data;
std::atomic<long> launches{0}, nodes{0};

__global__ void tiny(float* p) {
  if (p) p[threadIdx.x] += 1.f;
}

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = std::size_t{1} << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}

void completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == kKind)
      ++(reinterpret_cast<CUpti_ActivityKernel10*>(record)->graphId != 0 ? nodes : launches);
  std::free(buffer);
}

double now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(since).count();
}

// The first decile: the machine's other work only adds.
double decile(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 10];
}

double launch_ns(double seconds) {
  std::vector<double> times;
  for (const double end = now_ns() + seconds * 1e9; now_ns() < end;) {
    const double begin = now_ns();
    for (int i = 0; i < 500; ++i) tiny<<<1, 64, 0, stream>>>(data);
    cudaStreamSynchronize(stream);
    times.push_back((now_ns() - begin) / 500);
  }
  return decile(times);
}

cudaGraphExec_t make_graph() {
  cudaGraph_t graph;
  cudaGraphExec_t instance;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < kNodes; ++i) tiny<<<1, 64, 0, stream>>>(data);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&instance, graph, 0);
  return instance;
}

double node_ns(cudaGraphExec_t graph) {
  std::vector<double> times;
  for (int repeat = 0; repeat < 60; ++repeat) {
    const double begin = now_ns();
    for (int i = 0; i < 20; ++i) cudaGraphLaunch(graph, stream);
    cudaStreamSynchronize(stream);
    times.push_back((now_ns() - begin) / (20 * kNodes));
  }
  return decile(times);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "none";
  if (mode == "early" || mode == "before") cuptiActivityRegisterCallbacks(requested, completed);
  if (mode == "before") cuptiActivityEnable(kKind);
  cudaMalloc(&data, 4096);
  cudaStreamCreate(&stream);
  if (mode == "before") {
    launch_ns(0.1);
    cuptiActivityDisable(kKind);
  }
  launch_ns(0.2);
  const double launch_before = launch_ns(0.3);
  const cudaGraphExec_t graph = make_graph();
  node_ns(graph);
  const double node_before = node_ns(graph);
  double launch_on = 0, launch_after = launch_before, node_on = 0, node_after = node_before;
  if (mode != "none") {
    if (mode == "late") cuptiActivityRegisterCallbacks(requested, completed);
    cuptiActivityEnable(kKind);
    launch_on = launch_ns(0.1);
    node_on = node_ns(graph);
    cuptiActivityDisable(kKind);
    cuptiActivityFlushAll(0);
    launch_after = launch_ns(0.3);
    node_after = node_ns(graph);
  }
  std::printf(
      "{\"mode\":\"%s\",\"launch_before_ns\":%.0f,\"launch_on_ns\":%.0f,\"launch_after_ns\":%.0f,"
      "\"node_before_ns\":%.0f,\"node_on_ns\":%.0f,\"node_after_ns\":%.0f,"
      "\"launch_records\":%ld,\"node_records\":%ld}\n",
      mode.c_str(), launch_before, launch_on, launch_after, node_before, node_on, node_after,
      launches.load(), nodes.load());
}
