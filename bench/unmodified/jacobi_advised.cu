// SPDX-License-Identifier: Apache-2.0
// jacobi.cu with advice carried out. jacobi_advised VARIANT [ITERATIONS]: `base`; `graph` (cuda_graphs: 20 iterations in one
// graph); `late` (remove_syncs: the residual is read 20 iterations later); `reduce` (shorter residual: one atomic a block);
// `wide` (stream_wider: four values a thread); `fused` (the residual computed by the kernel that relaxes).
//
//   nvcc -O3 -std=c++20 -arch=sm_90 -o jacobi_advised jacobi_advised.cu
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

constexpr int kN = 2048, kEach = 20;

__global__ void relax(const float* from, float* to) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= kN - 1 || y >= kN - 1) return;
  const int at = y * kN + x;
  to[at] = 0.25f * (from[at - 1] + from[at + 1] + from[at - kN] + from[at + kN]);
}

__global__ void relax_wide(const float* from, float* to) {
  const int x = 4 * (blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y * blockDim.y + threadIdx.y;
  if (y == 0 || y >= kN - 1) return;
  const int at = y * kN + x;
  const float4 up = *reinterpret_cast<const float4*>(from + at - kN), down = *reinterpret_cast<const float4*>(from + at + kN);
  const float4 here = *reinterpret_cast<const float4*>(from + at);
  const float left = x > 0 ? from[at - 1] : 0, right = x + 4 < kN ? from[at + 4] : 0;
  float4 out;
  out.x = x == 0 ? here.x : 0.25f * (left + here.y + up.x + down.x);
  out.y = 0.25f * (here.x + here.z + up.y + down.y);
  out.z = 0.25f * (here.y + here.w + up.z + down.z);
  out.w = x + 4 == kN ? here.w : 0.25f * (here.z + right + up.w + down.w);
  *reinterpret_cast<float4*>(to + at) = out;
}

__device__ void add_of_block(float mine, float* sum) {
  __shared__ float parts[32];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  for (int by = 16; by > 0; by /= 2) mine += __shfl_down_sync(0xffffffff, mine, by);
  if (thread % 32 == 0) parts[thread / 32] = mine;
  __syncthreads();
  if (thread >= 32) return;
  mine = thread < static_cast<int>(blockDim.x * blockDim.y / 32) ? parts[thread] : 0;
  for (int by = 16; by > 0; by /= 2) mine += __shfl_down_sync(0xffffffff, mine, by);
  if (thread == 0) atomicAdd(sum, mine);
}

__global__ void relax_fused(const float* from, float* to, float* sum) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int at = y * kN + x;
  float mine = 0;
  if (x > 0 && y > 0 && x < kN - 1 && y < kN - 1) {
    const float now = 0.25f * (from[at - 1] + from[at + 1] + from[at - kN] + from[at + kN]);
    mine = (now - from[at]) * (now - from[at]);
    to[at] = now;
  }
  add_of_block(mine, sum);
}

template <bool kBlock>
__global__ void residual(const float* a, const float* b, float* sum) {
  float mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kN * kN; i += gridDim.x * blockDim.x)
    mine += (a[i] - b[i]) * (a[i] - b[i]);
  if (kBlock) {
    add_of_block(mine, sum);
  } else {
    atomicAdd(sum, mine);
  }
}

struct Solver {
  std::string variant;
  float *a = nullptr, *b = nullptr, *sum = nullptr;
  cudaStream_t stream = nullptr;

  void iterations() {
    const dim3 block(32, 8), grid(kN / 32, kN / 8);
    for (int i = 1; i <= kEach; ++i) {
      if (variant == "wide") {
        relax_wide<<<dim3(kN / 128, kN / 8), block, 0, stream>>>(a, b);
      } else if (variant == "fused" && i == kEach) {
        cudaMemsetAsync(sum, 0, sizeof(float), stream);
        relax_fused<<<grid, block, 0, stream>>>(a, b, sum);
      } else {
        relax<<<grid, block, 0, stream>>>(a, b);
      }
      std::swap(a, b);
    }
    if (variant == "fused") return;
    cudaMemsetAsync(sum, 0, sizeof(float), stream);
    if (variant == "reduce") {
      residual<true><<<264, 256, 0, stream>>>(a, b, sum);
    } else {
      residual<false><<<264, 256, 0, stream>>>(a, b, sum);
    }
  }
};

int main(int argc, char** argv) {
  Solver solver{argc > 1 ? argv[1] : "base"};
  const int rounds = (argc > 2 ? std::atoi(argv[2]) : 100'000) / kEach;
  float* host = nullptr;
  cudaMallocHost(&host, 2 * sizeof(float));
  host[0] = host[1] = 0;
  cudaMalloc(&solver.a, sizeof(float) * kN * kN);
  cudaMalloc(&solver.b, sizeof(float) * kN * kN);
  cudaMalloc(&solver.sum, sizeof(float));
  std::vector<float> start(std::size_t{kN} * kN, 0);
  std::fill(start.begin(), start.begin() + kN, 1.f);
  for (float* to : {solver.a, solver.b}) cudaMemcpy(to, start.data(), sizeof(float) * kN * kN, cudaMemcpyHostToDevice);
  cudaGraphExec_t graph = nullptr;
  cudaEvent_t done[2];
  for (cudaEvent_t& one : done) cudaEventCreateWithFlags(&one, cudaEventDisableTiming);
  if (solver.variant == "graph") {
    cudaGraph_t drawn;
    cudaStreamCreate(&solver.stream);
    cudaStreamBeginCapture(solver.stream, cudaStreamCaptureModeGlobal);
    solver.iterations();
    cudaStreamEndCapture(solver.stream, &drawn);
    cudaGraphInstantiate(&graph, drawn, 0);
  }
  std::vector<double> times;
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) {
    if (graph != nullptr) {
      cudaGraphLaunch(graph, solver.stream);
    } else {
      solver.iterations();
    }
    if (solver.variant == "late") {
      cudaMemcpyAsync(host + i % 2, solver.sum, sizeof(float), cudaMemcpyDeviceToHost, solver.stream);
      cudaEventRecord(done[i % 2], solver.stream);
      if (i > 0) cudaEventSynchronize(done[(i + 1) % 2]);
    } else {
      float pageable;
      cudaMemcpyAsync(&pageable, solver.sum, sizeof(float), cudaMemcpyDeviceToHost, solver.stream);
      cudaStreamSynchronize(solver.stream);
      host[i % 2] = pageable;
    }
    const auto now = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(now - begin).count());
    begin = now;
  }
  cudaDeviceSynchronize();
  std::sort(times.begin(), times.end());
  std::printf("%s step_ms %.4f residual %.3e %s\n", solver.variant.c_str(), times[times.size() / 2], host[(rounds + 1) % 2],
              cudaGetErrorString(cudaGetLastError()));
}
