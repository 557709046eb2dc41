// SPDX-License-Identifier: Apache-2.0
// A program on the fake CUPTI that "initialises CUDA" (loads the injected library as the driver
// would), launches kernels, and can run a profiler of its own in between: one that, like Kineto,
// knows its own buffers only. Built twice: linked against libcupti, and opening it at run time.
//
//   cupti_client BEFORE DURING AFTER [OPTION…]   launches before, while and after its own profiler
//                                                runs; DURING = 0: it has none
//     clock      its profiler sets a clock that counts ticks
//     early      it enables what it wants, for a context, before it registers its buffers
//     finalize   it shuts CUPTI down between two runs of its profiler
//     twice      its profiler runs again after AFTER
// Prints what its profiler saw.
#include "injection.h"

#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <set>
#include <unistd.h>

#ifdef PURLIN_DLOPEN_CUPTI
namespace {
void* library() {
  static void* handle = dlopen(PURLIN_DLOPEN_CUPTI, RTLD_NOW | RTLD_LOCAL);
  return handle;
}
template <class F>
F* at(const char* name) {
  return reinterpret_cast<F*>(dlsym(library(), name));
}
}  // namespace
#define CALL(function) at<decltype(function)>(#function)
#else
#define CALL(function) (&function)
#endif

extern "C" void fake_launch(const char* name, int launches, std::uint64_t duration_ns);
extern "C" void fake_copy(std::uint64_t bytes);
extern "C" int fake_enabled(CUpti_ActivityKind kind);
extern "C" std::uint64_t CUPTIAPI fake_ticks();

namespace {

std::set<std::uint8_t*>& lent() {
  static auto* buffers = new std::set<std::uint8_t*>;
  return *buffers;
}
constexpr std::uint64_t kDuration = 5000;
std::uint64_t expected_duration = kDuration;
int seen = 0, foreign = 0, wrong_times = 0;

// CUPTI calls back on threads of its own choice, as every client has to expect.
std::mutex& mutex() {
  static auto* one = new std::mutex;  // outlives the program's end, as do the buffers
  return *one;
}

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = 4096;
  *buffer = static_cast<std::uint8_t*>(std::malloc(*size));
  *most = 0;
  const std::lock_guard<std::mutex> lock(mutex());
  lent().insert(*buffer);
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                        std::size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex());
  if (lent().erase(buffer) == 0) {
    ++foreign;
    return;
  }
  CUpti_Activity* record = nullptr;
  while (CALL(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      ++seen;
      wrong_times += kernel->end - kernel->start != expected_duration ? 1 : 0;
    }
  std::free(buffer);
}

constexpr auto kKernels = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;

void profile_itself(int launches, bool early) {
  const auto context = reinterpret_cast<CUcontext>(&seen);
  if (early) CALL(cuptiActivityEnableContext)(context, kKernels);
  CALL(cuptiActivityRegisterCallbacks)(requested, completed);
  if (!early) CALL(cuptiActivityEnable)(kKernels);
  CALL(fake_copy)(4096);  // not wanted by this client: nobody's record
  CALL(fake_launch)("train_step", launches, kDuration);
  if (early) {
    CALL(cuptiActivityDisableContext)(context, kKernels);
  } else {
    CALL(cuptiActivityDisable)(kKernels);
  }
  CALL(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

// Until Purlin records again; without it nobody does.
void wait_for_capture() {
  const bool captured = std::getenv("CUDA_INJECTION64_PATH") != nullptr;
  for (int i = 0; captured && i < 10'000; ++i) {
    if (CALL(fake_enabled)(kKernels) != 0) break;
    usleep(1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return i < argc ? std::atoi(argv[i]) : 0; };
  const auto option = [&](const char* name) {
    for (int i = 4; i < argc; ++i)
      if (std::strcmp(argv[i], name) == 0) return true;
    return false;
  };
  const int before = number(1), during = number(2), after = number(3);
  inject();
  CALL(fake_copy)(4096);
  // A look at API calls that is over before it began must leave nothing switched on.
  CALL(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_RUNTIME);
  CALL(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_RUNTIME);
  bool right = CALL(fake_enabled)(CUPTI_ACTIVITY_KIND_RUNTIME) == 0;
  CALL(fake_launch)("train_step", before, kDuration);
  if (option("clock")) {
    CALL(cuptiActivityRegisterTimestampCallback)(CALL(fake_ticks));
    expected_duration = 3 * kDuration;
  }
  int own = 0;
  if (during > 0) profile_itself(during, option("early")), own += during;
  if (option("finalize")) {
    CALL(cuptiFinalize)();
  } else if (during > 0) {
    wait_for_capture();
  }
  CALL(fake_launch)("train_step", after, kDuration);
  if (option("twice")) profile_itself(during, option("early")), own += during;
  std::printf("own profiler saw %d of %d launches, %d foreign buffers, %d wrong times\n", seen, own,
              foreign, wrong_times);
  right = right && seen == own && foreign == 0 && wrong_times == 0;
  return right ? 0 : 1;
}
