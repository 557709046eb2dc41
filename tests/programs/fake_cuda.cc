// SPDX-License-Identifier: Apache-2.0
// A CUDA driver of one device of which only its version and the state of its primary context are
// known: it exists unless a test says otherwise, or a program waits for the file CONTEXT_AT.
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace {

std::atomic<int> active = 1;

}  // namespace

extern "C" {

void fake_primary_context(int exists) { active = exists; }

int cuDriverGetVersion(int* version) {
  *version = 13000;
  // CUPTI sees the call.
  if (void* cupti = dlopen("libcupti.so.13", RTLD_NOLOAD | RTLD_LAZY)) {
    if (void* call = dlsym(cupti, "fake_driver_version")) reinterpret_cast<void (*)()>(call)();
    dlclose(cupti);
  }
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* state) {
  *flags = 0;
  const char* context = std::getenv("CONTEXT_AT");
  *state = active != 0 && (context == nullptr || access(context, F_OK) == 0) ? 1 : 0;
  return 0;
}
}
