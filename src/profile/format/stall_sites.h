// SPDX-License-Identifier: Apache-2.0
// The bytes of a chunk of sampled stalls: what windows added, then functions with their sites.
// docs/formats/profile.md, STALL SITES, is the reference. Like wire.h it is compiled into the
// capture libraries. Thread-safety: none; values. A Decoder that fails yields zeros.
#pragma once

#include "profile/format/wire.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace purlin::profile::wire {

struct StallWindows {
  std::uint64_t windows = 0, sampled_ns = 0;
  std::uint64_t least_period = 0, most_period = 0;  // cycles; 0 = not known
  std::uint64_t dropped = 0, untold = 0;            // samples
};

struct StallOwner {
  std::uint32_t name = 0;  // string id
  std::uint32_t device = 0;
  std::uint32_t build = 0;  // 0 = that of the environment, else string id + 1
  std::uint64_t code = 0;
};

struct StallPlace {
  std::uint64_t offset = 0;  // UINT64_MAX = not kept
  std::uint32_t file = 0;    // 0 = not known, else string id + 1
  std::uint32_t line = 0;
};

constexpr std::size_t kMinOwnerBytes = 12, kMinPlaceBytes = 4, kMinCountBytes = 2;

class StallEncoder {
 public:
  void begin(const StallOwner& owner);
  void place(const StallPlace& place, std::size_t reasons);  // of the function begun last
  void count(std::uint32_t reason, std::uint64_t samples);   // `reasons` times
  std::size_t size() const { return functions_.size() + sites_.size(); }
  std::string finish(const StallWindows& windows);  // the chunk's payload; then starts again

 private:
  void end_function();
  Encoder functions_, sites_;
  std::uint64_t function_count_ = 0, site_count_ = 0;
  bool open_ = false;
};

StallWindows decode_stall_windows(Decoder& in);  // then varint count of owners
StallOwner decode_stall_owner(Decoder& in);      // then varint count of places
StallPlace decode_stall_place(Decoder& in);      // then varint count of (reason, samples)

}  // namespace purlin::profile::wire
