// Kernels whose stalls are known: each waits at the line that is marked, and for what its mark says.
// stalls_gpu.sh checks that sampled stalls name it. `stalls WHAT [SECONDS]`: WHAT is "three", "tiny" (a loop of
// tiny launches), "threads" (the same on six threads) or "graph" (replays). Prints launches a second.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <thread>
#include <vector>

extern "C" __global__ void waits_for_loads(const int* next, int* out, int steps) {
  int at = (blockIdx.x * blockDim.x + threadIdx.x) * 97 & 0xffffff;
  for (int i = 0; i < steps; ++i)
    at = next[at];  // MARK long_scoreboard
  if (at < 0) out[0] = at;
}

extern "C" __global__ void waits_at_barrier(float* out, int steps) {
  float x = threadIdx.x;
  for (int i = 0; i < steps; ++i) {
    if (threadIdx.x < 32)
      for (int k = 0; k < 200; ++k) x = x * 1.0001f + 0.5f;
    __syncthreads();  // MARK barrier
  }
  if (x < 0) out[0] = x;
}

extern "C" __global__ void waits_for_math(float* out, int steps) {
  double a = threadIdx.x, b = a + 1, c = a + 2, d = a + 3;
  for (int i = 0; i < steps; ++i) {
    a = a * 1.0000001 + 0.5, b = b * 1.0000001 + 0.5, c = c * 1.0000001 + 0.5, d = d * 1.0000001 + 0.5;  // MARK math_pipe_throttle
  }
  if (a + b + c + d < 0) out[0] = a;
}

extern "C" __global__ void tiny(float* out) {
  if (threadIdx.x > 2000) out[0] = 1;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "three";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 3;
  int* next;
  float* out;
  cudaMalloc(&next, 64 << 20);
  cudaMalloc(&out, 4096);
  std::vector<int> host(16 << 20);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = int((i * 2654435761u + 12345) & 0xffffff);
  cudaMemcpy(next, host.data(), 64 << 20, cudaMemcpyHostToDevice);
  std::atomic<long> launches{0};
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const auto loop = [&] {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaGraphExec_t graph = nullptr;
    if (std::strcmp(what, "graph") == 0) {
      cudaGraph_t made;
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
      for (int i = 0; i < 50; ++i) tiny<<<1, 32, 0, stream>>>(out);
      waits_for_loads<<<264, 256, 0, stream>>>(next, (int*)out, 100);
      cudaStreamEndCapture(stream, &made);
      cudaGraphInstantiate(&graph, made, 0);
    }
    long count = 0;
    while (std::chrono::steady_clock::now() < end) {
      if (graph != nullptr) {
        cudaGraphLaunch(graph, stream), ++count;
      } else if (std::strcmp(what, "three") == 0) {
        waits_for_loads<<<264, 256, 0, stream>>>(next, (int*)out, 800);
        waits_at_barrier<<<264, 1024, 0, stream>>>(out, 300);
        waits_for_math<<<264, 256, 0, stream>>>(out, 4000);
        count += 3;
      } else {
        for (int i = 0; i < 100; ++i) tiny<<<1, 32, 0, stream>>>(out);
        count += 100;
      }
      if (count % 3 == 0 || count % 1000 == 0) cudaStreamSynchronize(stream);
    }
    cudaStreamSynchronize(stream);
    launches += count;
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < (std::strcmp(what, "threads") == 0 ? 6 : 1); ++i) threads.emplace_back(loop);
  loop();
  for (std::thread& thread : threads) thread.join();
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s %.1f\n", cudaGetErrorString(error), launches / seconds);
  return error == cudaSuccess ? 0 : 1;
}
