// SPDX-License-Identifier: Apache-2.0
// C = A * B in fp32 with template parameters, built by nvcc for each config (gemm.toml).
//
//   bench M            prints the median time of one product of M x M matrices
//   bench M --check    exit status 0 if samples of C agree with a sum in double
//
// A block computes a BM x BN tile and walks K in steps of BK. A thread keeps TM x TN results, which
// lie BM / TM and BN / TN apart, so that neighbours read neighbouring elements.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifndef BM
#define BM 64
#define BN 64
#define BK 16
#define TM 4
#define TN 4
#define UNROLL 1
#define MIN_BLOCKS 1
#endif

template <int kBM, int kBN, int kBK, int kTM, int kTN, int kUnroll, int kMinBlocks>
__global__ void __launch_bounds__((kBM / kTM) * (kBN / kTN), kMinBlocks)
    gemm(int n, const float* a, const float* b, float* c) {
  constexpr int kX = kBN / kTN, kY = kBM / kTM, kThreads = kX * kY;
  __shared__ float tile_a[kBK][kBM + 4], tile_b[kBK][kBN];
  const int thread = threadIdx.x, x = thread % kX, y = thread / kX;
  const int row = blockIdx.y * kBM, column = blockIdx.x * kBN;
  float sums[kTM][kTN] = {};
  for (int k = 0; k < n; k += kBK) {
    for (int i = thread; i < kBM * kBK; i += kThreads)
      tile_a[i % kBK][i / kBK] = a[(row + i / kBK) * n + k + i % kBK];
    for (int i = thread; i < kBK * kBN; i += kThreads)
      tile_b[i / kBN][i % kBN] = b[(k + i / kBN) * n + column + i % kBN];
    __syncthreads();
#pragma unroll kUnroll
    for (int step = 0; step < kBK; ++step) {
      float left[kTM], right[kTN];
#pragma unroll
      for (int i = 0; i < kTM; ++i) left[i] = tile_a[step][y + i * kY];
#pragma unroll
      for (int j = 0; j < kTN; ++j) right[j] = tile_b[step][x + j * kX];
#pragma unroll
      for (int i = 0; i < kTM; ++i)
#pragma unroll
        for (int j = 0; j < kTN; ++j) sums[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < kTM; ++i)
    for (int j = 0; j < kTN; ++j) c[(row + y + i * kY) * n + column + x + j * kX] = sums[i][j];
}

static void must(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(code));
  std::exit(1);
}

int main(int count, char** arguments) {
  const int n = count > 1 ? std::atoi(arguments[1]) : 0;
  const bool check = count > 2 && std::strcmp(arguments[2], "--check") == 0;
  if (n <= 0 || n % BM != 0 || n % BN != 0 || n % BK != 0) {
    std::fprintf(stderr, "M is no multiple of the tiles\n");
    return 2;
  }
  std::vector<float> a(std::size_t(n) * n), b(a.size()), c(a.size());
  unsigned state = 1;
  const auto next = [&] {
    return float((state = state * 1664525u + 1013904223u) >> 9) / (1 << 23) - 0.5f;
  };
  for (float& value : a) value = next();
  for (float& value : b) value = next();
  float *da, *db, *dc;
  const std::size_t bytes = a.size() * sizeof(float);
  must(cudaMalloc(&da, bytes));
  must(cudaMalloc(&db, bytes));
  must(cudaMalloc(&dc, bytes));
  must(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
  must(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));
  const auto launch = [&] {
    gemm<BM, BN, BK, TM, TN, UNROLL, MIN_BLOCKS>
        <<<dim3(n / BN, n / BM), (BM / TM) * (BN / TN)>>>(n, da, db, dc);
    must(cudaGetLastError());
  };
  launch();
  must(cudaDeviceSynchronize());
  if (check) {
    must(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
    for (int sample = 0; sample < 4096; ++sample) {
      const std::size_t i = (sample * 7919u) % n, j = (sample * 104729u + 13) % n;
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += double(a[i * n + k]) * b[std::size_t(k) * n + j];
      if (!(std::abs(sum - c[i * n + j]) <= 1e-3 + 1e-4 * std::abs(sum))) return 1;
    }
    return 0;
  }
  cudaEvent_t start, end;
  must(cudaEventCreate(&start));
  must(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < 9; ++i) {
    must(cudaEventRecord(start));
    launch();
    must(cudaEventRecord(end));
    must(cudaEventSynchronize(end));
    float ms = 0;
    must(cudaEventElapsedTime(&ms, start, end));
    times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  std::printf("time: %.4f ms\n", times[times.size() / 2]);
  return 0;
}
