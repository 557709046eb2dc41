// SPDX-License-Identifier: Apache-2.0
// Characters of UTF-8, one at a time. A pure function; bytes that are no UTF-8 are told apart. [MT]
#pragma once

#include <cstddef>
#include <string_view>

namespace purlin {

struct Utf8 {
  std::size_t bytes = 1;
  char32_t point = 0;
  bool valid = false;  // else one byte that begins no character
};

// Of a text that is not empty. Overlong forms and surrogates are not valid.
inline Utf8 first_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, static_cast<char32_t>(lead), true};
  const std::size_t bytes = lead >= 0xf0 && lead < 0xf5   ? 4
                            : lead >= 0xe0 && lead < 0xf0 ? 3
                            : lead >= 0xc2 && lead < 0xe0 ? 2
                                                          : 1;
  if (bytes == 1 || bytes > text.size()) return {};
  auto point = static_cast<char32_t>(lead & (0x7fu >> bytes));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    point = (point << 6) | (byte(i) & 0x3fu);
  }
  const bool overlong = (bytes == 3 && point < 0x800) || (bytes == 4 && point < 0x10000);
  if (overlong || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return {};
  return {bytes, point, true};
}

}  // namespace purlin
