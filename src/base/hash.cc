// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace purlin {

std::uint64_t hash64(const void* data, std::size_t size) { return XXH3_64bits(data, size); }

Hash128 hash128(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

std::string hex32(std::uint64_t high, std::uint64_t low) {
  std::string hex(32, '0');
  for (std::size_t i = 16; i-- > 0; high >>= 4, low >>= 4) {
    hex[i] = "0123456789abcdef"[high & 15];
    hex[i + 16] = "0123456789abcdef"[low & 15];
  }
  return hex;
}

std::string hash128_hex(std::string_view text) {
  const Hash128 hash = hash128(text);
  return hex32(hash.high, hash.low);
}

FieldHasher& FieldHasher::add(std::string_view field) {
  joined_ += std::to_string(field.size());
  joined_ += ':';
  joined_ += field;
  return *this;
}

}  // namespace purlin
