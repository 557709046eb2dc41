// SPDX-License-Identifier: Apache-2.0
// XXH3 hashes: 64 bits for tables and checksums, 128 bits in hexadecimal for identities on disk.
// Not for security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace purlin {

std::uint64_t hash64(const void* data, std::size_t size);
inline std::uint64_t hash64(std::string_view text) { return hash64(text.data(), text.size()); }
struct Hash128 {
  std::uint64_t high = 0, low = 0;
};
Hash128 hash128(std::string_view text);
std::string hex32(std::uint64_t high, std::uint64_t low);  // 32 lower-case hexadecimal digits
// 32 lower-case hexadecimal digits.
std::string hash128_hex(std::string_view text);

// Hashes fields so that ("ab","c") and ("a","bc") differ.
class FieldHasher {
 public:
  FieldHasher& add(std::string_view field);
  std::string hex() const { return hash128_hex(joined_); }

 private:
  std::string joined_;
};

}  // namespace purlin
