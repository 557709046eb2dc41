// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/api_calls.h"

#include "model/profile/copy_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace purlin::profile {
namespace {

std::string lower_case(std::string_view text) {
  std::string out(text.substr(0, 128));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

template <std::size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return text.find(w) != std::string_view::npos; });
}

}  // namespace

CallKind classify_call(std::string_view raw) {
  constexpr std::array<std::string_view, 9> kLaunches = {
      "launchkernel", "launchcooperativekernel", "launchbykernel", "launch_kernel",
      "appendlaunch", "enqueuekernel",           "launchgrid",     "ndrangekernel",
      "culaunch"};
  constexpr std::array<std::string_view, 6> kCopies = {
      "memcpy", "memset", "memorycopy", "memoryfill", "memory_async_copy", "memory_copy"};
  constexpr std::array<std::string_view, 4> kSyncs = {"synchronize", "signal_wait", "waitforevents",
                                                      "clfinish"};
  constexpr std::array<std::string_view, 8> kAllocations = {
      "malloc",       "memalloc",       "free",      "hostalloc",
      "hostregister", "hostunregister", "memcreate", "mempool_allocate"};
  const std::string name = lower_case(raw);
  const auto has = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  // Building, instantiating or changing a graph runs nothing.
  if (has("graph")) return has("graphlaunch") ? CallKind::kGraphLaunch : CallKind::kOther;
  // These ask, or make a stream wait; the host goes on.
  if (has("eventquery") || has("streamquery") || has("streamwaitevent")) return CallKind::kOther;
  if (has("hostfunc") || has("callback")) return CallKind::kOther;  // these launch host code
  if (has_any(name, kLaunches) || name == "cudalaunch" || name.rfind("cudalaunch_", 0) == 0)
    return CallKind::kLaunch;
  if (has_any(name, kCopies)) return CallKind::kCopy;
  if (has_any(name, kSyncs)) return CallKind::kSync;
  if (has_any(name, kAllocations)) return CallKind::kAllocation;
  return CallKind::kOther;
}

std::string_view classify_copy(std::string_view raw) {
  struct Direction {
    std::string_view kind;
    std::array<std::string_view, 4> words;  // any of them; "" ends the list
  };
  constexpr std::array<Direction, 6> kDirections = {{
      {"memset", {"memset", "fill", "", ""}},
      {"p2p", {"ptop", "peer", "p2p", ""}},
      {"h2d", {"htod", "hosttodevice", "h2d", "host_to_device"}},
      {"d2h", {"dtoh", "devicetohost", "d2h", "device_to_host"}},
      {"d2d", {"dtod", "devicetodevice", "d2d", "device_to_device"}},
      {"h2h", {"htoh", "hosttohost", "h2h", "host_to_host"}},
  }};
  // "atoh", "htoa": to and from arrays, which live on the device.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kArrays = {
      {{"htoa", "h2d"}, {"atoh", "d2h"}, {"atoa", "d2d"}, {"atod", "d2d"}, {"dtoa", "d2d"}}};
  const std::string name = lower_case(raw);
  for (const Direction& direction : kDirections)
    for (const std::string_view word : direction.words)
      if (!word.empty() && name.find(word) != std::string::npos) return direction.kind;
  for (const auto& [word, kind] : kArrays)
    if (name.find(word) != std::string::npos) return kind;
  return "copy";
}

std::string copy_kind(std::string_view raw) {
  const std::string name = lower_case(raw);
  const std::string_view direction = classify_copy(raw);
  for (const std::string_view unified : {"unified", "uvm", "migration"})
    if (name.find(unified) != std::string::npos) return migration_kind_of(direction);
  for (const std::string_view memory : {"pageable", "pinned"})
    if (name.find(memory) != std::string::npos) return copy_kind_of(direction, memory);
  return std::string(direction);
}

}  // namespace purlin::profile
