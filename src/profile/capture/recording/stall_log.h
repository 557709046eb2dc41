// SPDX-License-Identifier: Apache-2.0
// StallLog: sampled stalls of one process, by function, instruction and reason, added up between
// two seals. Memory is bounded: further samples are kept under their function without a place, or
// under "(other kernels)".
//
// Owned by the Recorder, under its lock. Only std::bad_alloc is thrown.
#pragma once

#include "profile/format/stall_sites.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::profile::capture {

class StallLog {
 public:
  static constexpr std::size_t kMaxFunctions = 5'000, kMaxSites = 100'000, kMaxReasons = 64;
  static constexpr std::uint64_t kNowhere = UINT64_MAX;

  // Numbers to add samples with, good for the life of the log.
  std::uint32_t function(std::string_view name, std::uint32_t device, std::uint64_t code);
  std::uint32_t reason(std::string_view name);

  void add(std::uint32_t function, std::uint64_t offset, std::uint32_t reason,
           std::uint64_t samples);
  void add_windows(const wire::StallWindows& windows);

  bool empty() const { return touched_.empty() && windows_.windows == 0; }
  // The payload of a chunk with what was added since the last call; `id` numbers strings.
  std::string drain(const std::function<std::uint32_t(std::string_view)>& id);

 private:
  struct Function {
    std::string name;
    std::uint32_t device = 0;
    std::uint64_t code = 0;
  };
  struct Site {
    std::uint32_t function = 0;
    std::uint64_t offset = 0;
    bool touched = false;
  };
  struct Place {
    std::uint32_t function;
    std::uint64_t offset;
    bool operator==(const Place& other) const = default;
  };
  struct PlaceHash {
    std::size_t operator()(const Place& place) const {
      return std::hash<std::uint64_t>()(place.offset * 0x9e3779b97f4a7c15u + place.function);
    }
  };

  std::uint32_t site_of(std::uint32_t function, std::uint64_t offset);

  std::vector<Function> functions_;
  std::unordered_map<std::string, std::uint32_t> function_ids_;
  std::vector<std::string> reasons_;
  std::vector<Site> sites_;
  std::unordered_map<Place, std::uint32_t, PlaceHash> site_ids_;
  std::vector<std::vector<std::uint64_t>> counts_;  // of each site, by reason
  std::vector<std::uint32_t> touched_;
  wire::StallWindows windows_;
};

}  // namespace purlin::profile::capture
