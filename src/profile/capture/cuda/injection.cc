// SPDX-License-Identifier: Apache-2.0
// InitializeInjection: called by the CUDA driver inside cuInit, because CUDA_INJECTION64_PATH names
// this library. Finds CUPTI, installs the hooks that detect a second client, and starts recording.
// Without hooks nothing is recorded: the user's own profiler has priority.
#include "profile/capture/cuda/capture.h"
#include "profile/capture/cuda/cupti/hooks.h"
#include "profile/capture/ranges/range_log.h"
#include "profile/capture/session/per_process.h"

#include <cstdlib>
#include <new>

namespace purlin::profile::capture::cuda {
namespace {

using Instance = PerProcess<Capture>;

// Filled by initialize, before the hooks are in place; leaked, as the process may call them at
// exit.
Cupti* cupti = nullptr;

// ---- what CUPTI calls ----

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size,
                               std::size_t* most_records) {
  *buffer = nullptr;
  *size = *most_records = 0;
  try {
    if (Capture* instance = Instance::peek())
      instance->ownership().buffer_requested(buffer, size, most_records);
  } catch (...) {
  }
}

void CUPTIAPI buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                               std::size_t size, std::size_t valid) {
  try {
    if (Capture* instance = Instance::peek())
      instance->ownership().buffer_completed(context, stream, buffer, size, valid);
  } catch (...) {
  }
}

Ownership* ownership() {
  Capture* instance = Instance::peek();
  return instance != nullptr ? &instance->ownership() : nullptr;
}

void finish_at_exit() {
  try {
    if (Capture* instance = Instance::peek()) instance->session().finish();
  } catch (...) {
  }
}

// The program begins to name ranges, perhaps in the middle of a window.
void wake_session() {
  try {
    if (Capture* instance = Instance::peek()) instance->session().wake();
  } catch (...) {
  }
}

void initialize() {
  SessionOptions options;
  if (cupti != nullptr || !SessionOptions::from_environment("cuda", options)) return;
  cupti = new Cupti;
  Instance::prepare();
  if (!options.sampler.left_out.empty()) {  // CUPTI is not even loaded
    Capture* instance = Instance::get([&] { return new Capture(*cupti, options); });
    instance->refuse("not_sampled", options.sampler.left_out);
    instance->session().start();
    instance->session().finish();
    return;
  }
  std::string reason;
  const bool loaded = load_cupti(*cupti, reason);
  Capture* instance = Instance::get([&] { return new Capture(*cupti, options); });
  if (!loaded) {
    instance->refuse("no_cupti", "CUDA is not captured: " + reason);
  } else if (!install_hooks(*cupti, &ownership, reason)) {
    instance->refuse("no_hooks",
                     "CUDA is not captured, because another CUPTI client could not be "
                     "detected: in " +
                         cupti->path + ", " + reason);
  } else {
    redirect_new_copies(*cupti, instance->session().recorder());
    instance->begin(&buffer_requested, &buffer_completed);
  }
  instance->session().start();
  if (RangeLog* log = RangeLog::instance()) log->on_first_use(&wake_session);
  std::atexit(&finish_at_exit);
}

}  // namespace
}  // namespace purlin::profile::capture::cuda

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  try {
    purlin::profile::capture::cuda::initialize();
  } catch (...) {  // the program starts without capture
  }
  return 1;
}
