// SPDX-License-Identifier: Apache-2.0
// The peer of `purlin profile --full`: the least that a CUPTI activity client can do. An injection
// library (CUDA_INJECTION64_PATH) that registers buffers, enables the kinds Purlin's full capture
// enables, walks every record and drops it.
//
//   g++ -std=c++20 -O2 -shared -fPIC -isystem /usr/local/cuda/include bench/gpu/bare_cupti.cc -o
//   bare_cupti.so
//
// BARE_CUPTI names the libcupti to open when none is loaded yet; BARE_OUT a file that gets, at
// exit, "kernels copies sets dropped flushes longest_flush_us" as the library counted them. To ask
// what a part of a capture costs: BARE_FLUSH_MS=N has a thread of its own flush every N ms,
// BARE_KINDS says which kinds are enabled, "kcs" unless told: kernels, copies, sets, y for
// synchronization; "" registers and records nothing: what CUPTI costs by being there.
// BARE_OFF_MS=N disables the kinds of BARE_OFF, "k" unless told, after N ms: what a recording
// leaves behind. BARE_CYCLE=1 enables kernels once more then, for a millisecond, as Purlin does
// where the program has graphs. BARE_ON_MS=N enables the kinds after N ms: the program made its
// graphs before. BARE_AROUND=1 disables kernels while the program instantiates a graph.
#include "loaded_cupti.h"

#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

decltype(&cuptiActivityGetNextRecord) next_record;
decltype(&cuptiActivityGetNumDroppedRecords) dropped_records;
decltype(&cuptiActivityFlushAll) flush_all;
std::atomic<std::uint64_t> kernels, copies, sets, dropped, flushes, longest_flush_us;

void flush_every(int milliseconds) {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    const auto began = std::chrono::steady_clock::now();
    flush_all(0);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    ++flushes;
    longest_flush_us =
        std::max<std::uint64_t>(longest_flush_us, static_cast<std::uint64_t>(took.count()));
  }
}

CUpti_ActivityKind kind_of(char letter) {
  return letter == 'k'   ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
         : letter == 'c' ? CUPTI_ACTIVITY_KIND_MEMCPY
         : letter == 's' ? CUPTI_ACTIVITY_KIND_MEMSET
                         : CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
}

decltype(&cuptiActivityEnable) enable;
decltype(&cuptiActivityDisable) disable;

decltype(&cuptiSubscribe) subscribe;
decltype(&cuptiEnableCallback) enable_callback;
std::atomic<bool> kernels_on;

constexpr CUpti_CallbackId kInstantiate[] = {
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz,
};

void CUPTIAPI instantiated(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  if (!kernels_on) return;
  static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_ENTER
      ? disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      : enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

bool watch_graphs() {
  CUpti_SubscriberHandle subscriber = nullptr;
  bool refused = subscribe(&subscriber, &instantiated, nullptr) != CUPTI_SUCCESS;
  for (const CUpti_CallbackId id : kInstantiate)
    refused |= enable_callback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id) != CUPTI_SUCCESS;
  return !refused;
}

bool enable_kinds() {
  const char* const wanted = std::getenv("BARE_KINDS");
  bool refused = false;
  for (const char letter : std::string_view(wanted != nullptr ? wanted : "kcs")) {
    refused |= enable(kind_of(letter)) != CUPTI_SUCCESS;
    kernels_on = kernels_on || letter == 'k';
  }
  return !refused;
}

void enable_after(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  if (!enable_kinds()) std::fprintf(stderr, "bare_cupti: CUPTI refused\n");
}

void disable_after(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  kernels_on = false;
  const char* const kinds = std::getenv("BARE_OFF");
  for (const char letter : std::string_view(kinds != nullptr ? kinds : "k"))
    disable(kind_of(letter));
  if (std::getenv("BARE_CYCLE") == nullptr) return;
  enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

struct Pool {
  std::mutex mutex;
  std::vector<std::uint8_t*> free;
};

Pool& pool() {
  static auto* const instance = new Pool;  // used by other threads while the process exits
  return *instance;
}

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = kBytes;
  *most = 0;
  const std::lock_guard<std::mutex> lock(pool().mutex);
  if (pool().free.empty()) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBytes));
  } else {
    *buffer = pool().free.back();
    pool().free.pop_back();
  }
}

void CUPTIAPI completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                        std::size_t valid) {
  CUpti_Activity* record = nullptr;
  std::uint64_t seen[3] = {};
  while (next_record(buffer, valid, &record) == CUPTI_SUCCESS)
    ++seen[record->kind == CUPTI_ACTIVITY_KIND_MEMCPY   ? 1
           : record->kind == CUPTI_ACTIVITY_KIND_MEMSET ? 2
                                                        : 0];
  kernels += seen[0];
  copies += seen[1];
  sets += seen[2];
  std::size_t lost = 0;
  if (dropped_records(context, stream, &lost) == CUPTI_SUCCESS) dropped += lost;
  const std::lock_guard<std::mutex> lock(pool().mutex);
  pool().free.push_back(buffer);
}

void finish() {
  flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const char* path = std::getenv("BARE_OUT");
  FILE* out = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (out == nullptr) return;
  std::fprintf(
      out, "%llu %llu %llu %llu %llu %llu\n", static_cast<unsigned long long>(kernels.load()),
      static_cast<unsigned long long>(copies.load()), static_cast<unsigned long long>(sets.load()),
      static_cast<unsigned long long>(dropped.load()),
      static_cast<unsigned long long>(flushes.load()),
      static_cast<unsigned long long>(longest_flush_us.load()));
  std::fclose(out);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using loaded_cupti::bind;
  void* library = loaded_cupti::open(std::getenv("BARE_CUPTI"));
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  if (library == nullptr || !bind(library, "cuptiActivityRegisterCallbacks", register_callbacks) ||
      !bind(library, "cuptiActivityEnable", enable) ||
      !bind(library, "cuptiActivityDisable", disable) ||
      !bind(library, "cuptiActivityGetNextRecord", next_record) ||
      !bind(library, "cuptiActivityGetNumDroppedRecords", dropped_records) ||
      !bind(library, "cuptiSubscribe", subscribe) ||
      !bind(library, "cuptiEnableCallback", enable_callback) ||
      !bind(library, "cuptiActivityFlushAll", flush_all)) {
    std::fprintf(stderr, "bare_cupti: no libcupti\n");
    return 1;
  }
  bool refused = register_callbacks(&requested, &completed) != CUPTI_SUCCESS;
  if (std::getenv("BARE_AROUND") != nullptr) refused |= !watch_graphs();
  if (const char* on = std::getenv("BARE_ON_MS"))
    std::thread(&enable_after, std::atoi(on)).detach();
  else
    refused |= !enable_kinds();
  if (refused) std::fprintf(stderr, "bare_cupti: CUPTI refused\n");
  if (const char* every = std::getenv("BARE_FLUSH_MS"))
    std::thread(&flush_every, std::atoi(every)).detach();
  if (const char* off = std::getenv("BARE_OFF_MS"))
    std::thread(&disable_after, std::atoi(off)).detach();
  std::atexit(&finish);
  return 1;
}
