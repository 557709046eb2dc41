// SPDX-License-Identifier: Apache-2.0
#include "base/markup.h"

#include "base/utf8.h"

namespace purlin {
namespace {

// What XML 1.0 cannot say, controls, and marks that turn the direction of the text around them.
bool is_unfit(char32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x202a && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069) || point == 0xfffe || point == 0xffff;
}

}  // namespace

std::string markup_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8 next = first_utf8(text);
    const std::string_view character = text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
    if (!next.valid) {
      out += "\xEF\xBF\xBD";  // U+FFFD
      continue;
    }
    switch (next.point) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        if (next.point == '\t' || !is_unfit(next.point)) out += character;
    }
  }
  return out;
}

}  // namespace purlin
