// SPDX-License-Identifier: Apache-2.0
// Units of time that the tests of this folder share.
#pragma once

#include <cstdint>

namespace purlin::profile::capture {

inline constexpr std::int64_t kMs = 1'000'000, kSecond = 1'000 * kMs;

}  // namespace purlin::profile::capture
