// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC-SHA-256 (FIPS 180-4, RFC 2104): names of objects that others store for us, and
// signatures. For tables and checksums of our own files base/hash.h is faster. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace purlin {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view data);
Digest hmac_sha256(std::string_view key, std::string_view message);
// 64 lower-case hexadecimal digits.
std::string hex(const Digest& digest);
inline std::string sha256_hex(std::string_view data) { return hex(sha256(data)); }
inline std::string_view as_text(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}
// Takes the same time for every difference, so that a signature cannot be guessed byte by byte.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace purlin
