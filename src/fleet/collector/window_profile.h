// SPDX-License-Identifier: Apache-2.0
// Cuts a requested window out of capture files that are still written: one profile of all its
// processes, whose rows are the launches of the window.
//
// Files are foreign input, and are read up to their last seal. Reads only; takes memory
// for one file's timeline and the windows. Failure: kInvalid (a file too large, or a window without
// launches), and those of read_profile.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace purlin::fleet {

struct WindowLimits {
  std::uint64_t max_file_bytes = std::uint64_t{64} << 20;
  std::size_t max_events = 1'000'000;  // of one file, and of all windows together
};

// `files`: descriptors.
Result<std::string> window_profile(const std::vector<int>& files, std::int64_t begin_ns,
                                   std::int64_t end_ns, const WindowLimits& limits = {});

}  // namespace purlin::fleet
