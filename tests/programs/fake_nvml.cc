// SPDX-License-Identifier: Apache-2.0
// A libnvidia-ml.so.1 for end-to-end tests: one GPU, "GPU-fake", whose calls that change anything
// are appended to the file $FAKE_NVML_LOG. $FAKE_NVML_REASONS holds what slows the clock, as a
// number.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
int device = 0;
void note(const char* text) {
  const char* path = std::getenv("FAKE_NVML_LOG");
  if (path == nullptr) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fprintf(file, "%s\n", text);
    std::fclose(file);
  }
}
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned) { return std::strcpy(text, "1.0-fake"), 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void**) { return 6; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  *handle = &device;
  return std::strcmp(uuid, "GPU-fake") == 0 ? 0 : 6;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) { return *mhz = 1500, 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  const char* reasons = std::getenv("FAKE_NVML_REASONS");
  return *bits = reasons == nullptr ? 0 : std::strtoull(reasons, nullptr, 0), 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) { return *celsius = 50, 0; }
int nvmlDeviceGetPowerUsage(void*, unsigned* mw) { return *mw = 250000, 0; }
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* mw) { return *mw = 700000, 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) { return *count = 0, 0; }
int nvmlDeviceSetGpuLockedClocks(void*, unsigned low, unsigned high) {
  char text[64];
  std::snprintf(text, sizeof text, "lock %u %u", low, high);
  return note(text), std::getenv("FAKE_NVML_REFUSE") != nullptr ? 4 : 0;
}
int nvmlDeviceResetGpuLockedClocks(void*) { return note("reset"), 0; }
}
