// SPDX-License-Identifier: Apache-2.0
// Which way of recording in windows crashes CUPTI 13.0 (bench/results/cupti_windows_crash.md)? An
// injection library without Purlin: kinds are on for --window milliseconds, off for --gap, over and
// over. cupti_windows.sh runs one PyTorch program for each way at the same time.
//
//   g++ -std=c++20 -O2 -shared -fPIC -isystem /usr/local/cuda/include bench/gpu/cupti_windows.cc -o
//   cupti_windows.so
//
// CUPTI_WINDOWS, words joined by "_": kernels (that kind only), flush (2 ms before a window opens),
// flush-between (in the middle of the gap), quiet-close (not before CUPTI holds no buffer),
// quiet-open (likewise), fresh (no buffer is lent twice), rename (of each record the kernel's name,
// as Purlin does with records that it keeps), copies-later (kernels are off first, copies once
// CUPTI holds no buffer, as at the end of Purlin's recording). CUPTI_WINDOWS_OUT: a file of counts,
// as text, written anew with each window: what there was when the program died.
#include "loaded_cupti.h"

#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr double kStartMs = 6000, kAheadMs = 2, kMaxQuietMs = 400, kLaterMs = 20;

decltype(&cuptiActivityRegisterCallbacks) register_callbacks;
decltype(&cuptiActivityGetNextRecord) next_record;
decltype(&cuptiActivityFlushAll) flush_all;
decltype(&cuptiActivityEnable) enable;
decltype(&cuptiActivityDisable) disable;

struct State {
  std::string mode;
  double window_ms = 10, gap_ms = 15;
  int out = -1;
  loaded_cupti::Buffers buffers;
  std::atomic<long> kernels{0};
  long windows = 0, never_quiet = 0, in_flight = 0;

  bool has(const char* word) const {
    return ('_' + mode + '_').find(std::string("_") + word + '_') != std::string::npos;
  }
};

State& state() {
  static auto* const instance = new State;  // used by CUPTI's threads while the process exits
  return *instance;
}

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = loaded_cupti::Buffers::kBytes;
  *most = 0;
  *buffer = state().buffers.lend(state().has("fresh"));
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                        std::size_t valid) {
  State& s = state();
  CUpti_Activity* record = nullptr;
  while (valid > 0 && next_record(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++s.kernels;
      if (s.has("rename")) reinterpret_cast<CUpti_ActivityKernel10*>(record)->name = "renamed";
    }
  s.buffers.give_back(buffer);
}

void pause_ms(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

bool wait_until_quiet() {
  for (double waited = 0; waited < kMaxQuietMs; waited += 1) {
    flush_all(0);
    if (state().buffers.lent() == 0) return true;
    pause_ms(1);
  }
  ++state().never_quiet;
  return false;
}

void switch_kinds(bool on) {
  for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    if (kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && state().has("kernels")) continue;
    on ? enable(kind) : disable(kind);
  }
}

void close_window() {
  if (!state().has("copies-later")) return switch_kinds(false);
  disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  pause_ms(kLaterMs);
  if (wait_until_quiet()) switch_kinds(false);
}

void write_counts() {
  const State& s = state();
  char text[200];
  const int size =
      std::snprintf(text, sizeof text, "windows %ld kernels %ld in_flight %ld never_quiet %ld\n",
                    s.windows, s.kernels.load(), s.in_flight, s.never_quiet);
  if (s.out >= 0) (void)!::pwrite(s.out, text, static_cast<std::size_t>(size), 0);
}

void record_in_windows() {
  State& s = state();
  pause_ms(kStartMs);
  switch_kinds(false);
  for (;; ++s.windows) {
    write_counts();
    const double before = s.has("flush-between") ? s.gap_ms / 2 : s.gap_ms - kAheadMs;
    pause_ms(before);
    if (s.has("flush") || s.has("flush-between")) flush_all(0);
    if (s.has("quiet-open")) wait_until_quiet();
    pause_ms(s.gap_ms - before);
    switch_kinds(true);
    pause_ms(s.window_ms);
    if (s.has("quiet-close")) wait_until_quiet();
    if (s.buffers.lent() > 0) ++s.in_flight;
    close_window();
  }
}

double number(const char* name, double fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atof(text) : fallback;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  using loaded_cupti::bind;
  void* library = loaded_cupti::open();
  if (library == nullptr || !bind(library, "cuptiActivityRegisterCallbacks", register_callbacks) ||
      !bind(library, "cuptiActivityGetNextRecord", next_record) ||
      !bind(library, "cuptiActivityFlushAll", flush_all) ||
      !bind(library, "cuptiActivityEnable", enable) ||
      !bind(library, "cuptiActivityDisable", disable)) {
    std::fprintf(stderr, "cupti_windows: no libcupti\n");
    return 1;
  }
  State& s = state();
  if (const char* mode = std::getenv("CUPTI_WINDOWS")) s.mode = mode;
  s.window_ms = number("CUPTI_WINDOWS_MS", 10);
  s.gap_ms = number("CUPTI_WINDOWS_GAP_MS", 15);
  if (const char* out = std::getenv("CUPTI_WINDOWS_OUT"))
    s.out = ::open(out, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  register_callbacks(&requested, &completed);
  switch_kinds(true);
  std::thread(&record_in_windows).detach();
  return 1;
}
