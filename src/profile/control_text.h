// SPDX-License-Identifier: Apache-2.0
// What `purlin capture` asks a captured process: one line, "purlin-control/1 VERB [MILLISECONDS]".
// The answer is one JSON object. docs/formats/profile.md, "Control". Also compiled into the capture
// libraries.
//
// Pure functions; parse_control reads untrusted text from processes of the same user.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace purlin::profile {

struct ControlRequest {
  enum class Verb {
    kStatus,
    kStart,   // govern, where capture is off
    kStop,    // record nothing
    kWindow,  // record every launch, with its time, for `length_ns`; then as before
  };
  Verb verb = Verb::kStatus;
  std::int64_t length_ns = 0;
};

inline constexpr std::size_t kMaxControlBytes = 128;
inline constexpr std::int64_t kLongestWindowNs = 3'600'000'000'000;

std::string to_text(const ControlRequest& request);
bool parse_control(std::string_view text, ControlRequest& request);
// Of the process's socket in its spool.
std::string control_name(std::int64_t pid);

}  // namespace purlin::profile
