// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/hooks.h"

#include "profile/capture/cuda/interpose.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <link.h>
#include <utility>
#include <vector>

namespace purlin::profile::capture::cuda {
namespace {

// Of libcupti in a process. A set of hooks is code, so there is a most.
constexpr int kMostCopies = 4;

// The first is Purlin's own. Leaked, as the process may call hooks at exit. An entry is written
// before its hooks are in place.
std::array<const Cupti*, kMostCopies> copies = {};
std::atomic<int> copy_count = 0;
FindOwnership find_ownership = nullptr;

// Set while this thread is in a hook: what CUPTI or a client's callback calls in there is not
// another request of the client's, and would wait for itself.
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

// What a client calls in place of the functions of copy N.
template <int N>
struct Hooks {
  static const Cupti& copy() { return *copies[N]; }

  static CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                 CUpti_BuffersCallbackCompleteFunc completed) {
    return handled([&](Ownership& o) { return o.client_registers(copy(), requested, completed); },
                   [&] { return copy().register_callbacks(requested, completed); });
  }
  static CUptiResult CUPTIAPI enable(CUpti_ActivityKind kind) {
    return handled([&](Ownership& o) { return o.client_enables(copy(), nullptr, kind); },
                   [&] { return copy().enable(kind); });
  }
  static CUptiResult CUPTIAPI enable_context(CUcontext context, CUpti_ActivityKind kind) {
    return handled([&](Ownership& o) { return o.client_enables(copy(), context, kind); },
                   [&] { return copy().enable_context(context, kind); });
  }
  static CUptiResult CUPTIAPI disable(CUpti_ActivityKind kind) {
    return handled([&](Ownership& o) { return o.client_disables(copy(), nullptr, kind); },
                   [&] { return copy().disable(kind); });
  }
  static CUptiResult CUPTIAPI disable_context(CUcontext context, CUpti_ActivityKind kind) {
    return handled([&](Ownership& o) { return o.client_disables(copy(), context, kind); },
                   [&] { return copy().disable_context(context, kind); });
  }
  static CUptiResult CUPTIAPI flush_all(std::uint32_t flag) {
    return handled([&](Ownership& o) { return o.client_flushes(copy(), flag); },
                   [&] { return copy().flush_all(flag); });
  }
  static CUptiResult CUPTIAPI register_timestamp(CUpti_TimestampCallbackFunc clock) {
    return handled([&](Ownership& o) { return o.client_sets_clock(copy(), clock); },
                   [&] { return copy().register_timestamp(clock); });
  }
  static CUptiResult CUPTIAPI finalize() {
    return handled([](Ownership& o) { return o.client_finalizes(copy()); },
                   [] { return copy().finalize(); });
  }

  template <class Function>
  static Replacement replacing(const char* name, Function* original, Function* replacement) {
    return {name, reinterpret_cast<void*>(original), reinterpret_cast<void*>(replacement)};
  }
  static bool install(std::string& reason) {
    const Replacement hooks[] = {
        replacing("cuptiActivityRegisterCallbacks", copy().register_callbacks, &register_callbacks),
        replacing("cuptiActivityEnable", copy().enable, &enable),
        replacing("cuptiActivityEnableContext", copy().enable_context, &enable_context),
        replacing("cuptiActivityDisable", copy().disable, &disable),
        replacing("cuptiActivityDisableContext", copy().disable_context, &disable_context),
        replacing("cuptiActivityFlushAll", copy().flush_all, &flush_all),
        replacing("cuptiFinalize", copy().finalize, &finalize),
        replacing("cuptiActivityRegisterTimestampCallback", copy().register_timestamp,
                  &register_timestamp),
    };
    return interpose(hooks, std::size(hooks), reason);
  }
};

template <std::size_t... N>
bool install_nth(int copy, std::string& reason, std::index_sequence<N...>) {
  constexpr bool (*install[])(std::string&) = {&Hooks<N>::install...};
  return install[copy](reason);
}

bool install_in(const Cupti& cupti, std::string& reason) {
  const int place = copy_count;
  if (place == kMostCopies) return reason = "there are too many copies of libcupti", false;
  copies[static_cast<std::size_t>(place)] = &cupti;
  if (!install_nth(place, reason, std::make_index_sequence<kMostCopies>())) return false;
  copy_count = place + 1;
  return true;
}

// By a function that has no hook: its address tells copies apart whatever their paths look like.
bool known(const Cupti& cupti) {
  for (int i = 0; i < copy_count; ++i)
    if (copies[static_cast<std::size_t>(i)]->get_version == cupti.get_version) return true;
  return false;
}

// How many objects have ever been loaded: while that stays, no copy is new.
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

// Those that need no second look: hooked, or not to be had.
std::vector<std::string>& looked_at() {
  static auto* const paths = new std::vector<std::string>;
  return *paths;
}

}  // namespace

bool install_hooks(const Cupti& own, FindOwnership find, std::string& reason) {
  find_ownership = find;
  return install_in(own, reason);
}

void hook_new_copies(Ownership& ownership) {
  static unsigned long long seen = 0;
  const unsigned long long now = loads();
  if (std::exchange(seen, now) == now) return;
  for (const std::string& path : loaded_cuptis()) {
    if (std::find(looked_at().begin(), looked_at().end(), path) != looked_at().end()) continue;
    looked_at().push_back(path);
    auto* copy = new Cupti;
    std::string reason;
    if (!open_loaded_cupti(path, *copy, reason)) {
      ownership.copy_not_hooked(path, reason);
    } else if (!known(*copy)) {
      if (!install_in(*copy, reason)) ownership.copy_not_hooked(path, reason);
    }
  }
}

}  // namespace purlin::profile::capture::cuda
