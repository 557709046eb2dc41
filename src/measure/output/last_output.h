// SPDX-License-Identifier: Apache-2.0
// last_output: the end of what a failed command wrote, for a message. Pure function.
#pragma once

#include "base/os/process.h"
#include "base/text.h"

#include <string>
#include <string_view>

namespace purlin::measure {

// Of its errors, or of its output without errors.
inline std::string last_output(const Captured& captured) {
  constexpr std::size_t kMost = 400;
  std::string_view text = trim(captured.err.empty() ? captured.out : captured.err);
  if (text.size() > kMost) text = text.substr(text.size() - kMost);
  return std::string(text);
}

}  // namespace purlin::measure
