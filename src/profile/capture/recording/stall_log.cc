// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/recording/stall_log.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace purlin::profile::capture {
namespace {

constexpr std::size_t kMaxStallName = 1 << 16;

}  // namespace

std::uint32_t StallLog::function(std::string_view name, std::uint32_t device, std::uint64_t code) {
  name = name.substr(0, kMaxStallName);
  const auto key_of = [](std::string_view text, std::uint32_t of_device, std::uint64_t of_code) {
    std::string key(reinterpret_cast<const char*>(&of_device), sizeof of_device);
    key.append(reinterpret_cast<const char*>(&of_code), sizeof of_code);
    return key.append(text);
  };
  std::string key = key_of(name, device, code);
  auto known = function_ids_.find(key);
  if (known == function_ids_.end() && functions_.size() >= kMaxFunctions) {
    name = "(other kernels)";
    code = 0;
    key = key_of(name, device, code);
    known = function_ids_.find(key);
  }
  if (known != function_ids_.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(functions_.size());
  functions_.push_back({std::string(name), device, code});
  function_ids_.emplace(std::move(key), id);
  return id;
}

std::uint32_t StallLog::reason(std::string_view name) {
  const auto known = std::find(reasons_.begin(), reasons_.end(), name);
  if (known != reasons_.end()) return static_cast<std::uint32_t>(known - reasons_.begin());
  if (reasons_.size() >= kMaxReasons) return reason("misc");
  reasons_.emplace_back(name.substr(0, kMaxStallName));
  if (reasons_.size() == kMaxReasons - 1) reason("misc");  // so that there is one
  return static_cast<std::uint32_t>(std::find(reasons_.begin(), reasons_.end(), name) -
                                    reasons_.begin());
}

std::uint32_t StallLog::site_of(std::uint32_t function, std::uint64_t offset) {
  if (functions_[function].name == "(other kernels)") offset = kNowhere;
  auto known = site_ids_.find({function, offset});
  if (known == site_ids_.end() && sites_.size() >= kMaxSites && offset != kNowhere)
    known = site_ids_.find({function, offset = kNowhere});
  if (known != site_ids_.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(sites_.size());
  sites_.push_back({function, offset, false});
  counts_.emplace_back();
  site_ids_.emplace(Place{function, offset}, id);
  return id;
}

void StallLog::add(std::uint32_t function, std::uint64_t offset, std::uint32_t reason,
                   std::uint64_t samples) {
  if (samples == 0) return;
  const std::uint32_t id = site_of(function, offset);
  std::vector<std::uint64_t>& counts = counts_[id];
  if (counts.size() <= reason) counts.resize(reason + std::size_t{1});
  counts[reason] += samples;
  if (!std::exchange(sites_[id].touched, true)) touched_.push_back(id);
}

void StallLog::add_windows(const wire::StallWindows& windows) {
  windows_.windows += windows.windows;
  windows_.sampled_ns += windows.sampled_ns;
  windows_.dropped += windows.dropped;
  windows_.untold += windows.untold;
  if (windows.least_period == 0) return;
  windows_.least_period = windows_.least_period == 0
                              ? windows.least_period
                              : std::min(windows_.least_period, windows.least_period);
  windows_.most_period = std::max(windows_.most_period, windows.most_period);
}

std::string StallLog::drain(const std::function<std::uint32_t(std::string_view)>& id) {
  std::sort(touched_.begin(), touched_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(sites_[a].function, sites_[a].offset) <
           std::tie(sites_[b].function, sites_[b].offset);
  });
  wire::StallEncoder encoder;
  std::uint32_t open = UINT32_MAX;
  for (const std::uint32_t index : touched_) {
    Site& site = sites_[index];
    if (site.function != open) {
      open = site.function;
      const Function& function = functions_[open];
      encoder.begin({id(function.name), function.device, 0, function.code});
    }
    std::vector<std::uint64_t>& counts = counts_[index];
    encoder.place({site.offset, 0, 0},
                  counts.size() - static_cast<std::size_t>(
                                      std::count(counts.begin(), counts.end(), std::uint64_t{0})));
    for (std::size_t reason = 0; reason < counts.size(); ++reason)
      if (counts[reason] > 0) encoder.count(id(reasons_[reason]), std::exchange(counts[reason], 0));
    site.touched = false;
  }
  touched_.clear();
  return encoder.finish(std::exchange(windows_, {}));
}

}  // namespace purlin::profile::capture
