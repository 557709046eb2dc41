// SPDX-License-Identifier: Apache-2.0
// A CUDA driver of one device, "Fake GPU", without attributes. Its primary context exists unless a
// test says otherwise, or a program waits for the file CONTEXT_AT. With FAKE_CUDA_SLOW=US the
// device's name takes so many microseconds.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <thread>
#include <unistd.h>

namespace {

std::atomic<int> active = 1;
std::atomic<int> names_asked = 0;

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

int fake_names_asked() { return names_asked; }

int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}

int cuDeviceGetName(char* name, int size, int) {
  ++names_asked;
  if (const char* slow = std::getenv("FAKE_CUDA_SLOW"))
    std::this_thread::sleep_for(std::chrono::microseconds(std::strtol(slow, nullptr, 10)));
  std::snprintf(name, static_cast<unsigned>(size), "Fake GPU");
  return 0;
}

int cuDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return 0;
}

int cuDeviceTotalMem_v2(unsigned long* bytes, int) {
  *bytes = 1ul << 30;
  return 0;
}

int cuDeviceGetUuid_v2(void* uuid, int) {
  std::memset(uuid, 0, 16);
  return 0;
}

int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* state) {
  *flags = 0;
  const char* context = std::getenv("CONTEXT_AT");
  *state = active != 0 && (context == nullptr || access(context, F_OK) == 0) ? 1 : 0;
  return 0;
}
}
