// SPDX-License-Identifier: Apache-2.0
// A CUDA driver of one device of which only its version and the state of its primary context are
// known.
#include <atomic>
#include <dlfcn.h>

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
  *state = active;
  return 0;
}
}
