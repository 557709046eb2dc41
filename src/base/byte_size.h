// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them in flags and the environment. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace purlin {

// "4096", "64K", "1.5GiB" (of 1024), "500MB" (of 1000) -> bytes. nullopt for anything else, and
// beyond 9 EB.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace purlin
