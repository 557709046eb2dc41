// SPDX-License-Identifier: Apache-2.0
// An injection library without Purlin that records kernels for a second and then takes CUPTI out of
// the program with cuptiFinalize, in one of several ways. Which of them a program survives is in
// bench/results/cupti_detach.md.
//
//   g++ -std=c++17 -O2 -shared -fPIC -I/usr/local/cuda/include bench/gpu/cupti_detach.cc -o
//   detach.so -ldl -lpthread CUDA_INJECTION64_PATH=$PWD/detach.so WAY=driver ./cupti_detach_loop
//   graph 6
//
// WAY: driver, runtime: in the callback of the program's next call of that API, as it returns;
// thread: on a thread of this library (the program pauses meanwhile with LOOP_PAUSE=1); own: in the
// callback of a call that this library's thread makes. LATE=1: kernels are first recorded when a
// context exists. AGAIN=1: they are recorded once more for 0.1 s. RETAIN=1: before that, a thread
// retains the primary context, waits for it and releases it.
#include "loaded_cupti.h"

#include <cuda.h>
#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

loaded_cupti::Buffers buffers;
decltype(&cuptiActivityEnable) enable;
decltype(&cuptiActivityDisable) disable;
decltype(&cuptiActivityFlushAll) flush;
decltype(&cuptiFinalize) finalize_cupti;
decltype(&cuptiSubscribe) subscribe;
decltype(&cuptiEnableDomain) enable_domain;
std::atomic<bool> wanted{false}, done{false};
std::atomic<long> only_thread{0};

bool is_set(const char* name) { return std::getenv(name) != nullptr; }
void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

template <class F>
F driver(const char* name) {
  return reinterpret_cast<F>(dlsym(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY), name));
}

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = buffers.lend();
  *size = loaded_cupti::Buffers::kBytes;
  *most = 0;
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t) {
  buffers.give_back(buffer);
}

void record(bool on) {
  for (const CUpti_ActivityKind kind : kKinds) on ? enable(kind) : disable(kind);
  if (!on) flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

void finalize() {
  if (is_set("RETAIN")) {
    std::thread([] {
      CUcontext context = nullptr;
      driver<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain")(&context, 0);
      driver<CUresult (*)(CUcontext)>("cuCtxSetCurrent")(context);
      driver<CUresult (*)()>("cuCtxSynchronize")();
      driver<CUresult (*)(CUcontext)>("cuCtxSetCurrent")(nullptr);
      driver<CUresult (*)(CUdevice)>("cuDevicePrimaryCtxRelease_v2")(0);
    }).join();
  }
  const auto began = std::chrono::steady_clock::now();
  const CUptiResult result = finalize_cupti();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  std::fprintf(stderr, "cuptiFinalize: %d in %.3f ms\n", static_cast<int>(result), took.count());
  done = true;
}

void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  if (static_cast<const CUpti_CallbackData*>(data)->callbackSite != CUPTI_API_EXIT) return;
  if (only_thread != 0 && only_thread != syscall(SYS_gettid)) return;
  if (!wanted.exchange(false)) return;
  if (only_thread == 0) driver<CUresult (*)()>("cuCtxSynchronize")();
  finalize();
}

bool has_context() {
  unsigned flags = 0;
  int active = 0;
  return driver<CUresult (*)(CUdevice, unsigned*, int*)>("cuDevicePrimaryCtxGetState")(
             0, &flags, &active) == CUDA_SUCCESS &&
         active != 0;
}

void run() {
  const std::string way = is_set("WAY") ? std::getenv("WAY") : "driver";
  if (way != "driver" && way != "runtime" && way != "thread" && way != "own") {
    std::fprintf(stderr, "cupti_detach: WAY=%s is none of driver, runtime, thread, own\n",
                 way.c_str());
    return;
  }
  if (is_set("LATE")) {
    while (!has_context()) sleep_ms(1);
    record(true);
  }
  sleep_ms(1000);
  record(false);
  sleep_ms(500);
  if (is_set("AGAIN")) {
    record(true);
    sleep_ms(100);
    record(false);
  }
  sleep_ms(way == "thread" || way == "own" ? 1500 : 500);  // until the program pauses
  if (way == "thread") return finalize();
  CUpti_SubscriberHandle subscriber = nullptr;
  if (subscribe(&subscriber, called, nullptr) != CUPTI_SUCCESS) return;
  enable_domain(1, subscriber,
                way == "runtime" ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API);
  if (way == "own") only_thread = syscall(SYS_gettid);
  wanted = true;
  int version = 0;
  if (way == "own") driver<CUresult (*)(int*)>("cuDriverGetVersion")(&version);
  for (int i = 0; i < 300 && !done; ++i) sleep_ms(10);
}

}  // namespace

extern "C" int InitializeInjection() {
  void* const library = loaded_cupti::open();
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  if (library == nullptr ||
      !loaded_cupti::bind(library, "cuptiActivityRegisterCallbacks", register_callbacks) ||
      !loaded_cupti::bind(library, "cuptiActivityEnable", enable) ||
      !loaded_cupti::bind(library, "cuptiActivityDisable", disable) ||
      !loaded_cupti::bind(library, "cuptiActivityFlushAll", flush) ||
      !loaded_cupti::bind(library, "cuptiFinalize", finalize_cupti) ||
      !loaded_cupti::bind(library, "cuptiSubscribe", subscribe) ||
      !loaded_cupti::bind(library, "cuptiEnableDomain", enable_domain))
    return 0;
  register_callbacks(requested, completed);
  if (!is_set("LATE")) record(true);
  std::thread(run).detach();
  return 1;
}
