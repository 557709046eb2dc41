// SPDX-License-Identifier: Apache-2.0
// InitializeInjection: called by the CUDA driver inside cuInit, because CUDA_INJECTION64_PATH names
// this library. Finds CUPTI, puts the hooks in place by which a second client is noticed, and
// starts recording. Without hooks nothing is recorded: the user's own profiler must never come
// second.
#include "profile/capture/cuda/capture.h"
#include "profile/capture/cuda/interpose.h"
#include "profile/capture/per_process.h"

#include <cstdlib>
#include <iterator>
#include <new>
#include <utility>

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

// ---- what another client calls in place of CUPTI's functions ----

// Set while this thread is in a hook: what CUPTI or a client's callback calls in there is not
// another request of the client's, and would wait for itself.
thread_local bool in_hook = false;

// A forked child has no instance: its calls go through as they are.
template <class Handle, class Pass>
CUptiResult handled(Handle handle, Pass pass) noexcept {
  Capture* instance = in_hook ? nullptr : Instance::peek();
  if (instance == nullptr) return pass();
  struct Inside {
    Inside() { in_hook = true; }
    ~Inside() { in_hook = false; }
  } inside;
  try {
    return handle(instance->ownership());
  } catch (...) {
    return CUPTI_ERROR_OUT_OF_MEMORY;
  }
}

CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc requested,
                                        CUpti_BuffersCallbackCompleteFunc completed) {
  return handled([&](Ownership& o) { return o.client_registers(requested, completed); },
                 [&] { return cupti->register_callbacks(requested, completed); });
}

CUptiResult CUPTIAPI enable(CUpti_ActivityKind kind) {
  return handled([&](Ownership& o) { return o.client_enables(nullptr, kind); },
                 [&] { return cupti->enable(kind); });
}

CUptiResult CUPTIAPI enable_context(CUcontext context, CUpti_ActivityKind kind) {
  return handled([&](Ownership& o) { return o.client_enables(context, kind); },
                 [&] { return cupti->enable_context(context, kind); });
}

CUptiResult CUPTIAPI disable(CUpti_ActivityKind kind) {
  return handled([&](Ownership& o) { return o.client_disables(nullptr, kind); },
                 [&] { return cupti->disable(kind); });
}

CUptiResult CUPTIAPI disable_context(CUcontext context, CUpti_ActivityKind kind) {
  return handled([&](Ownership& o) { return o.client_disables(context, kind); },
                 [&] { return cupti->disable_context(context, kind); });
}

CUptiResult CUPTIAPI flush_all(std::uint32_t flag) {
  return handled([&](Ownership& o) { return o.client_flushes(flag); },
                 [&] { return cupti->flush_all(flag); });
}

CUptiResult CUPTIAPI register_timestamp(CUpti_TimestampCallbackFunc clock) {
  return handled([&](Ownership& o) { return o.client_sets_clock(clock); },
                 [&] { return cupti->register_timestamp(clock); });
}

CUptiResult CUPTIAPI finalize() {
  return handled([](Ownership& o) { return o.client_finalizes(); },
                 [] { return cupti->finalize(); });
}

template <class Function>
Replacement replacing(const char* name, Function* original, Function* replacement) {
  return {name, reinterpret_cast<void*>(original), reinterpret_cast<void*>(replacement)};
}

bool install_hooks(std::string& reason) {
  const Replacement hooks[] = {
      replacing("cuptiActivityRegisterCallbacks", cupti->register_callbacks, &register_callbacks),
      replacing("cuptiActivityEnable", cupti->enable, &enable),
      replacing("cuptiActivityEnableContext", cupti->enable_context, &enable_context),
      replacing("cuptiActivityDisable", cupti->disable, &disable),
      replacing("cuptiActivityDisableContext", cupti->disable_context, &disable_context),
      replacing("cuptiActivityFlushAll", cupti->flush_all, &flush_all),
      replacing("cuptiFinalize", cupti->finalize, &finalize),
      replacing("cuptiActivityRegisterTimestampCallback", cupti->register_timestamp,
                &register_timestamp),
  };
  return interpose(hooks, std::size(hooks), reason);
}

void finish_at_exit() {
  try {
    if (Capture* instance = Instance::peek()) instance->session().finish();
  } catch (...) {
  }
}

void initialize() {
  SessionOptions options;
  if (cupti != nullptr || !SessionOptions::from_environment("cuda", options)) return;
  cupti = new Cupti;
  Instance::prepare();
  std::string reason;
  const bool loaded = load_cupti(*cupti, reason);
  Capture* instance = Instance::get([&] { return new Capture(*cupti, options); });
  if (!loaded) {
    instance->refuse("no_cupti", "CUDA is not captured: " + reason);
  } else if (!install_hooks(reason)) {
    instance->refuse("no_hooks",
                     "CUDA is not captured, because another CUPTI client could not be "
                     "noticed: in " +
                         cupti->path + ", " + reason);
  } else {
    instance->begin(&buffer_requested, &buffer_completed);
  }
  instance->session().start();
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
