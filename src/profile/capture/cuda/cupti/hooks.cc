// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/cupti/hooks.h"

#include "profile/capture/cuda/cupti/interpose.h"

#include <algorithm>
#include <iterator>
#include <link.h>
#include <utility>
#include <vector>

namespace purlin::profile::capture::cuda {
namespace {

// Set before the hooks are in place; leaked, as the process may call them at exit.
const Cupti* hooked_cupti = nullptr;
FindOwnership find_ownership = nullptr;

// Set while this thread is in a hook: calls of CUPTI or of a client's callback in there are not
// another request of the client, and would wait for themselves.
thread_local bool in_hook = false;

template <class Handle, class Pass>
CUptiResult handled(Handle handle, Pass pass) noexcept {
  Ownership* ownership = in_hook || Ownership::has_turn() ? nullptr : find_ownership();
  if (ownership == nullptr) return pass();
  struct Inside {
    Inside() { in_hook = true; }
    ~Inside() { in_hook = false; }
  } inside;
  try {
    return handle(*ownership);
  } catch (...) {
    return CUPTI_ERROR_OUT_OF_MEMORY;
  }
}

CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc requested,
                                        CUpti_BuffersCallbackCompleteFunc completed) {
  return handled([&](Ownership& o) { return o.client_registers(requested, completed); },
                 [&] { return hooked_cupti->register_callbacks(requested, completed); });
}

CUptiResult CUPTIAPI enable(CUpti_ActivityKind kind) {
  return handled([&](Ownership& o) { return o.client_enables(nullptr, kind); },
                 [&] { return hooked_cupti->enable(kind); });
}

CUptiResult CUPTIAPI enable_context(CUcontext context, CUpti_ActivityKind kind) {
  return handled([&](Ownership& o) { return o.client_enables(context, kind); },
                 [&] { return hooked_cupti->enable_context(context, kind); });
}

CUptiResult CUPTIAPI disable(CUpti_ActivityKind kind) {
  return handled([&](Ownership& o) { return o.client_disables(nullptr, kind); },
                 [&] { return hooked_cupti->disable(kind); });
}

CUptiResult CUPTIAPI disable_context(CUcontext context, CUpti_ActivityKind kind) {
  return handled([&](Ownership& o) { return o.client_disables(context, kind); },
                 [&] { return hooked_cupti->disable_context(context, kind); });
}

CUptiResult CUPTIAPI flush_all(std::uint32_t flag) {
  return handled([&](Ownership& o) { return o.client_flushes(flag); },
                 [&] { return hooked_cupti->flush_all(flag); });
}

CUptiResult CUPTIAPI register_timestamp(CUpti_TimestampCallbackFunc clock) {
  return handled([&](Ownership& o) { return o.client_sets_clock(clock); },
                 [&] { return hooked_cupti->register_timestamp(clock); });
}

CUptiResult CUPTIAPI finalize() {
  return handled([](Ownership& o) { return o.client_finalizes(); },
                 [] { return hooked_cupti->finalize(); });
}

// The functions that CUPTI allows to one client only: callbacks, counters and sampling.
CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                               void* data) {
  const auto pass = [&] { return hooked_cupti->subscribe(subscriber, callback, data); };
  return handled([&](Ownership& o) { return o.client_takes_profiler(pass); }, pass);
}

CUptiResult CUPTIAPI subscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                                  void* data, void* params) {
  const auto pass = [&] { return hooked_cupti->subscribe_v2(subscriber, callback, data, params); };
  return handled([&](Ownership& o) { return o.client_takes_profiler(pass); }, pass);
}

template <CUptiResult (*Cupti::*Function)(void*)>
CUptiResult CUPTIAPI profile(void* params) {
  const auto pass = [&] { return (hooked_cupti->*Function)(params); };
  return handled([&](Ownership& o) { return o.client_takes_profiler(pass); }, pass);
}

template <class Function>
Replacement replacing(const char* name, Function* original, Function* replacement) {
  return {name, reinterpret_cast<void*>(original), reinterpret_cast<void*>(replacement)};
}

// The number of objects loaded so far: while it is the same, no copy is new.
unsigned long long loads() {
  unsigned long long result = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &result);
  return result;
}

// Empty if the copy's clients now share Purlin's copy; else the reason.
std::string redirect_copy(const std::string& path) {
  Cupti copy;
  std::string reason;
  if (!open_loaded_cupti(path, copy, reason)) return reason;
  // A function without a hook shows that this is Purlin's own copy, for any form of the path.
  if (copy.get_version == hooked_cupti->get_version) return "";
  if (copy.version != hooked_cupti->version)
    return "it is of another version than " + hooked_cupti->path +
           ", which Purlin uses, and CUPTI serves one copy only; PURLIN_CUPTI names the one to use";
  if (redirect(reinterpret_cast<const void*>(copy.get_version), hooked_cupti->handle, "cupti",
               reason))
    return "";
  return reason;
}

}  // namespace

bool install_hooks(const Cupti& own, FindOwnership find, std::string& reason) {
  hooked_cupti = &own;
  find_ownership = find;
  const Replacement hooks[] = {
      replacing("cuptiActivityRegisterCallbacks", own.register_callbacks, &register_callbacks),
      replacing("cuptiActivityEnable", own.enable, &enable),
      replacing("cuptiActivityEnableContext", own.enable_context, &enable_context),
      replacing("cuptiActivityDisable", own.disable, &disable),
      replacing("cuptiActivityDisableContext", own.disable_context, &disable_context),
      replacing("cuptiActivityFlushAll", own.flush_all, &flush_all),
      replacing("cuptiFinalize", own.finalize, &finalize),
      replacing("cuptiActivityRegisterTimestampCallback", own.register_timestamp,
                &register_timestamp),
      replacing("cuptiSubscribe", own.subscribe, &subscribe),
      replacing("cuptiSubscribe_v2", own.subscribe_v2, &subscribe_v2),
      replacing("cuptiRangeProfilerEnable", own.range_profiler, &profile<&Cupti::range_profiler>),
      replacing("cuptiProfilerBeginSession", own.profiler_session,
                &profile<&Cupti::profiler_session>),
      replacing("cuptiPmSamplingEnable", own.pm_sampling, &profile<&Cupti::pm_sampling>),
      replacing("cuptiPCSamplingEnable", own.pc_sampling, &profile<&Cupti::pc_sampling>),
  };
  return interpose(hooks, std::size(hooks), reason);
}

void redirect_new_copies(const Cupti& own, Recorder& recorder) {
  static unsigned long long seen = 0;
  static auto* const looked_at = new std::vector<std::string>;
  const unsigned long long now = loads();
  if (&own != hooked_cupti || std::exchange(seen, now) == now) return;
  for (const std::string& path : loaded_cuptis()) {
    if (std::find(looked_at->begin(), looked_at->end(), path) != looked_at->end()) continue;
    looked_at->push_back(path);
    const std::string reason = redirect_copy(path);
    if (!reason.empty())
      recorder.note("second_cupti",
                    "a CUPTI client that uses " + path +
                        " is refused by CUPTI while Purlin captures: " + reason,
                    1);
  }
}

}  // namespace purlin::profile::capture::cuda
