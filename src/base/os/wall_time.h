// SPDX-License-Identifier: Apache-2.0
// Times of clocks and files as nanoseconds since 1970. Pure functions. [MT]
#pragma once

#include <cstdint>
#include <ctime>

namespace purlin {

// What does not fit, before 1970 and after April 2262, becomes the nearest that does, so that it
// stays before or after every other time.
std::int64_t wall_ns_of(const std::timespec& time);

}  // namespace purlin
