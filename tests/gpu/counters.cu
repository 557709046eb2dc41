// SPDX-License-Identifier: Apache-2.0
// Programs for counters_gpu.sh. `counters work SECONDS|xN`: six kernels of known work, in turn, N
// times or for so long. `counters captures|waits|threads SECONDS`: what reading counters must not
// break; they check themselves and say "ok".
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                            \
  do {                                                                         \
    const cudaError_t error_ = (call);                                         \
    if (error_ != cudaSuccess) {                                               \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));     \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr int kSide = 8192;  // of the transposed matrix
constexpr int kTiles = 4096, kDepth = 256;

__global__ void copy(const float4* from, float4* to, std::size_t n) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

// 2 FMA a turn and thread.
__global__ void fma_fp32(float* out, int turns) {
  float a = threadIdx.x, b = 1.000001f, c = 0.5f;
  for (int i = 0; i < turns; ++i) {
    a = a * b + c;
    c = c * b + a;
  }
  if (a + c == 42) *out = a;
}

// A 16 × 16 × 16 product a turn and warp.
__global__ void tensor_bf16(const __nv_bfloat16* in, float* out, int depth) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(a, in, 16);
  wmma::load_matrix_sync(b, in + 256, 16);
  for (int i = 0; i < depth; ++i) wmma::mma_sync(sum, a, b, sum);
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  wmma::store_matrix_sync(out + warp * 256, sum, 16, wmma::mem_row_major);
}

__global__ void reduce(const float* in, float* out, std::size_t n) {
  __shared__ float part[256];
  float sum = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    sum += in[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int width = 128; width > 0; width /= 2) {
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

__global__ void transpose(const float* in, float* out, int side) {
  const int x = blockIdx.x * 32 + threadIdx.x;
  for (int y = blockIdx.y * 32 + threadIdx.y; y < blockIdx.y * 32 + 32; y += blockDim.y)
    out[std::size_t{static_cast<unsigned>(x)} * side + y] =
        in[std::size_t{static_cast<unsigned>(y)} * side + x];
}

// Reads 8 MiB again and again.
__global__ void l2_resident(const float4* in, float* out, int turns) {
  constexpr std::size_t n = (std::size_t{8} << 20) / sizeof(float4);
  float sum = 0;
  for (int turn = 0; turn < turns; ++turn)
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
         i += std::size_t{gridDim.x} * blockDim.x)
      sum += in[(i + turn * 7919) % n].x;
  if (sum == 42) *out = sum;
}

// Ends when it is told to, or after two seconds.
__global__ void consume(volatile int* flag, int* saw) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (*flag == 0 && now - begin < 2000000000);
  *saw = *flag;
}
__global__ void produce(volatile int* flag) { *flag = 1; }

struct Buffers {
  float4 *a = nullptr, *b = nullptr;
  float* c = nullptr;
  Buffers() {
    CHECK(cudaMalloc(&a, kBytes));
    CHECK(cudaMalloc(&b, kBytes));
    CHECK(cudaMalloc(&c, std::size_t{kTiles} * 8 * 256 * sizeof(float)));
    CHECK(cudaMemset(a, 0, kBytes));
    CHECK(cudaMemset(b, 0, kBytes));
  }
};

void all_six(const Buffers& m, cudaStream_t stream) {
  copy<<<1056, 256, 0, stream>>>(m.a, m.b, kBytes / sizeof(float4));
  fma_fp32<<<1056, 256, 0, stream>>>(m.c, 10000);
  tensor_bf16<<<kTiles, 256, 0, stream>>>(reinterpret_cast<const __nv_bfloat16*>(m.a), m.c, kDepth);
  reduce<<<1056, 256, 0, stream>>>(reinterpret_cast<const float*>(m.a), m.c, kBytes / 4);
  transpose<<<dim3(kSide / 32, kSide / 32), dim3(32, 8), 0, stream>>>(
      reinterpret_cast<const float*>(m.a), reinterpret_cast<float*>(m.b), kSide);
  l2_resident<<<1056, 256, 0, stream>>>(m.a, m.c, 20);
  CHECK(cudaGetLastError());
}

using Clock = std::chrono::steady_clock;

struct Time {
  explicit Time(double seconds)
      : end(Clock::now() + std::chrono::microseconds(static_cast<long>(seconds * 1e6))) {}
  bool left() const { return Clock::now() < end; }
  Clock::time_point end;
};

void work(const char* how_long) {
  const Buffers m;
  const long times = how_long[0] == 'x' ? std::atol(how_long + 1) : 1L << 40;
  const Time time(how_long[0] == 'x' ? 1e6 : std::atof(how_long));
  long done = 0;
  const Clock::time_point began = Clock::now();
  for (; done < times && time.left(); ++done) {
    all_six(m, nullptr);
    if (done % 4 == 3) CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaDeviceSynchronize());
  std::printf("{\"rounds\": %ld, \"us_per_round\": %.2f}\n", done,
              std::chrono::duration<double, std::micro>(Clock::now() - began).count() / done);
}

void captures(double seconds) {
  const Buffers m;
  std::atomic<bool> go = true;
  // Another thread's launches are what a window would choose while this one captures.
  std::thread other([&] {
    cudaStream_t own;
    CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    while (go) {
      fma_fp32<<<64, 128, 0, own>>>(m.c, 100);
      CHECK(cudaStreamSynchronize(own));
    }
  });
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  long done = 0;
  for (const Time time(seconds); time.left(); ++done) {
    cudaGraph_t graph;
    cudaGraphExec_t run;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 5; ++i) fma_fp32<<<64, 128, 0, stream>>>(m.c, 100 + i);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&run, graph, 0));
    CHECK(cudaGraphLaunch(run, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(run));
    CHECK(cudaGraphDestroy(graph));
    fma_fp32<<<64, 128, 0, stream>>>(m.c, 100);
    CHECK(cudaStreamSynchronize(stream));
  }
  go = false;
  other.join();
  std::printf("%ld captures: ok\n", done);
}

// A kernel that waits for one that is launched after it.
void waits(double seconds) {
  int *flag, *saw;
  CHECK(cudaHostAlloc(&flag, 2 * sizeof(int), cudaHostAllocMapped));
  saw = flag + 1;
  cudaStream_t first, second;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  // Loading a kernel at its first launch waits for what runs.
  *flag = 1;
  produce<<<1, 1, 0, second>>>(flag);
  consume<<<1, 1, 0, first>>>(flag, saw);
  CHECK(cudaDeviceSynchronize());
  long done = 0, missed = 0;
  double longest = 0;
  for (const Time time(seconds); time.left(); ++done) {
    *flag = *saw = 0;
    const Clock::time_point began = Clock::now();
    consume<<<1, 1, 0, first>>>(flag, saw);
    produce<<<1, 1, 0, second>>>(flag);
    CHECK(cudaDeviceSynchronize());
    missed += *saw == 0;
    longest = std::max(longest, std::chrono::duration<double>(Clock::now() - began).count());
  }
  std::printf("%ld pairs, longest %.3f s, %ld that waited in vain: %s\n", done, longest, missed,
              missed == 0 ? "ok" : "BROKEN");
  if (missed != 0) std::exit(1);
}

void threads(double seconds) {
  const Buffers m;
  const Time time(seconds);
  std::atomic<long> done = 0;
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t)
    all.emplace_back([&] {
      cudaStream_t own;
      CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
      for (; time.left(); ++done) {
        for (int i = 0; i < 20; ++i) fma_fp32<<<32, 128, 0, own>>>(m.c, 500);
        CHECK(cudaStreamSynchronize(own));
      }
    });
  for (std::thread& thread : all) thread.join();
  CHECK(cudaDeviceSynchronize());
  std::printf("%ld rounds of 8 threads: ok\n", done.load());
}

int main(int count, char** arguments) {
  const std::string what = count > 2 ? arguments[1] : "";
  if (what == "work") {
    work(arguments[2]);
  } else if (what == "captures") {
    captures(std::atof(arguments[2]));
  } else if (what == "waits") {
    waits(std::atof(arguments[2]));
  } else if (what == "threads") {
    threads(std::atof(arguments[2]));
  } else {
    return 2;
  }
}
