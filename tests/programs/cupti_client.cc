// SPDX-License-Identifier: Apache-2.0
// A program on the fake CUPTI that "initialises CUDA" (loads the injected library as the driver
// would), launches kernels, and can run a profiler of its own in between: one that, like Kineto,
// knows its own buffers only. Built twice: linked against libcupti, and opening it at run time.
//
//   cupti_client BEFORE DURING AFTER   launches before, while and after its own profiler runs;
//                                      DURING = 0: it has none
// Prints what its profiler saw.
#include <cupti.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
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

namespace {

std::set<std::uint8_t*>& lent() {
  static auto* buffers = new std::set<std::uint8_t*>;
  return *buffers;
}
int seen = 0, foreign = 0;

void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = 4096;
  *buffer = static_cast<std::uint8_t*>(std::malloc(*size));
  *most = 0;
  lent().insert(*buffer);
}

void CUPTIAPI completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                        std::size_t valid) {
  if (lent().erase(buffer) == 0) {
    ++foreign;
    return;
  }
  CUpti_Activity* record = nullptr;
  while (CALL(cuptiActivityGetNextRecord)(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ++seen;
  std::free(buffer);
}

void initialize_cuda() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(9);
  }
  reinterpret_cast<int (*)()>(dlsym(handle, "InitializeInjection"))();
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return i < argc ? std::atoi(argv[i]) : 0; };
  const int before = number(1), during = number(2), after = number(3);
  initialize_cuda();
  CALL(fake_copy)(4096);
  CALL(fake_launch)("train_step", before, 5000);
  if (during > 0) {
    CALL(cuptiActivityRegisterCallbacks)(requested, completed);
    CALL(cuptiActivityEnable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    CALL(fake_copy)(4096);  // not wanted by this client: nobody's record
    CALL(fake_launch)("train_step", during, 5000);
    CALL(cuptiActivityDisable)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    CALL(cuptiActivityFlushAll)(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    std::printf("own profiler saw %d of %d launches, %d foreign buffers\n", seen, during, foreign);
    // Until somebody else records again; without Purlin nobody does.
    const bool captured = std::getenv("CUDA_INJECTION64_PATH") != nullptr;
    for (int i = 0; captured && i < 10'000; ++i) {
      if (CALL(fake_enabled)(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != 0) break;
      usleep(1000);
    }
  }
  CALL(fake_launch)("train_step", after, 5000);
  if (during > 0 && seen != during) return 1;
  return foreign == 0 ? 0 : 1;
}
