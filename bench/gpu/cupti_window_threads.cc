// SPDX-License-Identifier: Apache-2.0
// Does CUPTI 13.0 go on recording every thread's launches in windows
// (bench/results/cupti_window_threads.md)? An injection library without Purlin: CONCURRENT_KERNEL
// is on for two seconds after the first record, then in kWindows windows of 60 ms. Where the
// program launches on two threads in each of its steps, two buffers are lent in each window, and
// nearly every id between a window's first and last has a record. cupti_window_threads.sh runs
// PyTorch programs with it.
//
//   g++ -std=c++20 -O2 -shared -fPIC -isystem /usr/local/cuda/include
//   bench/gpu/cupti_window_threads.cc -o cupti_window_threads.so
//
// CUPTI_WINDOWS: `before`, the kind is first on before the program has a context; `early`, so, and
// off and on again as soon as it has one; `after`, first on as soon as it has one; `told`,
// likewise, where CUPTI tells of the context (the CONTEXT kind). CUPTI_WINDOWS_OUT: a file for one
// line. The process ends itself when it is done.
#include "loaded_cupti.h"

#include <cuda.h>
#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr CUpti_ActivityKind kKernels = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
constexpr int kWindows = 45;

decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
decltype(&cuptiActivityGetNextRecord) next_record;
decltype(&cuptiActivityFlushAll) flush_all;
decltype(&cuptiActivityEnable) enable;
decltype(&cuptiActivityDisable) disable;

struct State {
  std::string mode;
  std::FILE* out = nullptr;
  loaded_cupti::Buffers buffers;
  std::atomic<long> asked{0};
  std::mutex mutex;  // of ids
  std::vector<std::uint32_t> ids;
};

State& state() {
  static auto* const instance = new State;  // used by CUPTI's threads while the process exits
  return *instance;
}

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = loaded_cupti::Buffers::kBytes;
  *most = 0;
  ++state().asked;
  *buffer = state().buffers.lend();
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                        std::size_t valid) {
  CUpti_Activity* record = nullptr;
  {
    const std::lock_guard<std::mutex> lock(state().mutex);
    while (valid > 0 && next_record(buffer, valid, &record) == CUPTI_SUCCESS)
      if (record->kind == kKernels)
        state().ids.push_back(reinterpret_cast<CUpti_ActivityKernel10*>(record)->correlationId);
  }
  state().buffers.give_back(buffer);
}

void pause_ms(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

std::vector<std::uint32_t> take_ids() {
  std::vector<std::uint32_t> ids;
  const std::lock_guard<std::mutex> lock(state().mutex);
  ids.swap(state().ids);
  return ids;
}

void await_context() {
  if (state().mode == "told") {
    while (state().asked == 0) pause_ms(0.1);
    return;
  }
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto context_state = reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(
      dlsym(driver, "cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  for (int active = 0; active == 0; context_state(0, &flags, &active)) pause_ms(0.2);
}

void record_in_windows() {
  State& s = state();
  await_context();
  if (s.mode == "early") {
    disable(kKernels);
    enable(kKernels);
  } else if (s.mode != "before") {
    enable(kKernels);
  }
  const long asked = s.mode == "told" ? 1 : 0;
  while (s.asked <= asked) pause_ms(1);
  pause_ms(2000);
  disable(kKernels);
  pause_ms(50);
  flush_all(0);
  pause_ms(50);
  const std::size_t head = take_ids().size();
  long both = 0, records = 0, ids = 0;
  for (int window = 0; window < kWindows; ++window) {
    enable(kKernels);
    pause_ms(60);
    both += s.buffers.lent() >= 2 ? 1 : 0;
    disable(kKernels);
    pause_ms(8);
    flush_all(0);
    pause_ms(12);
    std::vector<std::uint32_t> seen = take_ids();
    if (seen.empty()) continue;
    std::sort(seen.begin(), seen.end());
    ids += seen.back() - seen.front() + 1;
    records += std::unique(seen.begin(), seen.end()) - seen.begin();
  }
  std::fprintf(s.out,
               "%-7s %zu records before; both threads in %ld of %d windows; records of ids %.3f\n",
               s.mode.c_str(), head, both, kWindows,
               ids > 0 ? static_cast<double>(records) / static_cast<double>(ids) : 0.0);
  std::fclose(s.out);
  _exit(0);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using loaded_cupti::bind;
  void* library = loaded_cupti::open();
  const char* mode = std::getenv("CUPTI_WINDOWS");
  const char* out = std::getenv("CUPTI_WINDOWS_OUT");
  if (library == nullptr || mode == nullptr || out == nullptr ||
      !bind(library, "cuptiActivityRegisterCallbacks", register_callbacks) ||
      !bind(library, "cuptiActivityGetNextRecord", next_record) ||
      !bind(library, "cuptiActivityFlushAll", flush_all) ||
      !bind(library, "cuptiActivityEnable", enable) ||
      !bind(library, "cuptiActivityDisable", disable)) {
    std::fprintf(stderr, "cupti_window_threads: no libcupti, or no CUPTI_WINDOWS and _OUT\n");
    return 1;
  }
  State& s = state();
  s.mode = mode;
  s.out = std::fopen(out, "w");
  if (s.out == nullptr) return 1;
  register_callbacks(&requested, &completed);
  if (s.mode == "told") enable(CUPTI_ACTIVITY_KIND_CONTEXT);
  if (s.mode == "before" || s.mode == "early") enable(kKernels);
  std::thread(&record_in_windows).detach();
  return 1;
}
