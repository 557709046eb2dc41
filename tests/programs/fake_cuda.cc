// SPDX-License-Identifier: Apache-2.0
// A CUDA driver of one device of which only the state of its primary context is known.
#include <atomic>

namespace {

std::atomic<int> active = 1;

}  // namespace

extern "C" {

void fake_primary_context(int exists) { active = exists; }

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
