// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace purlin {

std::uint64_t hash64(const void* data, std::size_t size) { return XXH3_64bits(data, size); }

std::string hash128_hex(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

FieldHasher& FieldHasher::add(std::string_view field) {
  joined_ += std::to_string(field.size());
  joined_ += ':';
  joined_ += field;
  return *this;
}

}  // namespace purlin
