// SPDX-License-Identifier: Apache-2.0
// A CUPTI client and nothing else (no Purlin) that switches kernel records on and off while threads
// launch and graphs are replayed: what CUPTI keeps. Ends when CUPTI is stuck (its device buffers
// are not used again, each new one is a block of the C library's), when time is over, or with a
// backtrace where CUPTI crashes. bench/results/capture_faults_h200.md, "Ten thousand windows".
//
//   nvcc -O2 -std=c++20 -arch=sm_90 -Xcompiler -rdynamic -o cupti_toggles cupti_toggles.cu -lcupti
//   MALLOC_MMAP_THRESHOLD_=131072 ./cupti_toggles SECONDS ON_US OFF_US [graphs] [small] [forced]
//
// graphs: two threads replay graphs, one of them makes each anew. small: device buffers of 320,000
// bytes, not 3.2 million, so that it shows ten times sooner. forced: the 30th flush is a forced
// one.
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <execinfo.h>
#include <malloc.h>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr int kNodes = 20;
constexpr std::size_t kStuckBlocks = 64;  // of the C library's; some 45 are usual

std::mutex mutex;
std::vector<std::uint8_t*> free_buffers;
long records = 0, without_end = 0, lent = 0;
std::atomic<long> launched{0};
std::atomic<bool> done{false};

__global__ void empty() {}

double now_s() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

void pause_us(int us) {
  if (us > 0) std::this_thread::sleep_for(std::chrono::microseconds(us));
}

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(result));
  std::exit(2);
}

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (free_buffers.empty())
    free_buffers.push_back(static_cast<std::uint8_t*>(std::aligned_alloc(8, kBytes)));
  *buffer = free_buffers.back();
  free_buffers.pop_back();
  *size = kBytes;
  *most = 0;
  ++lent;
}

void completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != kKinds[0]) continue;
    const auto* kernel = reinterpret_cast<CUpti_ActivityKernel10*>(record);
    ++records;
    without_end += kernel->end < kernel->start || kernel->start == 0 ? 1 : 0;
  }
  free_buffers.push_back(buffer);
  --lent;
}

void crashed(int) {
  void* frames[40];
  const int depth = backtrace(frames, 40);
  static const char text[] = "crashed:\n";
  if (write(1, text, sizeof text - 1) > 0) backtrace_symbols_fd(frames, depth, 1);
  _exit(3);
}

template <class Work>
std::thread worker(int between_us, Work work) {
  return std::thread([=] {
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    while (!done) {
      work(stream);
      check(cudaStreamSynchronize(stream));
      pause_us(between_us);
    }
  });
}

cudaGraphExec_t make_graph() {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t result;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kNodes; ++i) empty<<<1, 32, 0, stream>>>();
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&result, graph, 0));
  check(cudaGraphDestroy(graph));
  check(cudaStreamDestroy(stream));
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 3) return 2;
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const double seconds = std::atof(argv[1]);
  const int on_us = std::atoi(argv[2]), off_us = std::atoi(argv[3]);
  void* frame[1];
  (void)backtrace(frame, 1);  // what it allocates, it allocates now
  std::signal(SIGSEGV, crashed);
  std::signal(SIGABRT, crashed);
  if (has("small")) {
    std::size_t bytes = 320'000, size = sizeof bytes;
    cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &bytes);
  }
  const auto toggle = [](auto function) {
    const double began = now_s();
    for (const CUpti_ActivityKind kind : kKinds) function(kind);
    return now_s() - began;
  };
  cuptiActivityRegisterCallbacks(&requested, &completed);
  toggle(&cuptiActivityEnable);
  check(cudaFree(nullptr));
  toggle(&cuptiActivityDisable);

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.push_back(worker(200, [](cudaStream_t stream) {
      for (int k = 0; k < 8; ++k) empty<<<1, 32, 0, stream>>>();
      launched += 8;
    }));
  if (has("graphs")) {
    static const cudaGraphExec_t held = make_graph();
    threads.push_back(worker(200, [](cudaStream_t stream) {
      check(cudaGraphLaunch(held, stream));
      launched += kNodes;
    }));
    threads.push_back(worker(5000, [](cudaStream_t stream) {
      const cudaGraphExec_t fresh = make_graph();
      check(cudaGraphLaunch(fresh, stream));
      check(cudaStreamSynchronize(stream));
      check(cudaGraphExecDestroy(fresh));
      launched += kNodes;
    }));
  }
  const double began = now_s();
  double flushed = began, off_s = 0;
  long toggles = 0, flushes = 0, last_toggles = 0;
  bool stuck = false;
  const auto tell = [&] {
    const struct mallinfo2 memory = mallinfo2();
    const std::lock_guard<std::mutex> lock(mutex);
    std::printf(
        "%5.1f s: %ld switchings, %ld records of %ld launches, %ld without end, %ld buffers lent, "
        "%zu blocks of "
        "%zu kB, off in %.0f us%s\n",
        now_s() - began, toggles, records, launched.load(), without_end, lent, memory.hblks,
        memory.hblkhd / 1024,
        1e6 * off_s / static_cast<double>(std::max(1L, toggles - last_toggles)),
        stuck ? ": STUCK" : "");
    std::fflush(stdout);
    off_s = 0;
    last_toggles = toggles;
  };
  for (double next = began; now_s() < began + seconds && !stuck; ++toggles) {
    toggle(&cuptiActivityEnable);
    pause_us(on_us);
    off_s += toggle(&cuptiActivityDisable);
    if (now_s() - flushed > 0.1) {
      flushed = now_s();
      cuptiActivityFlushAll(has("forced") && ++flushes == 30 ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
                                                             : 0);
    }
    pause_us(off_us);
    stuck = mallinfo2().hblks > kStuckBlocks;
    if (now_s() < next && !stuck) continue;
    next += 2;
    tell();
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  check(cudaDeviceSynchronize());
  cuptiActivityFlushAll(0);
  tell();
  return stuck ? 1 : 0;
}
