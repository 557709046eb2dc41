// SPDX-License-Identifier: Apache-2.0
#include "base/output/markup.h"

#include "base/sha256.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

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

std::string policy_source(std::string_view sha256_hex) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto nibble = [](char c) {
    return static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::string base64;
  for (std::size_t at = 0; at < sha256_hex.size(); at += 6) {  // three bytes, four digits
    std::uint32_t bits = 0;
    const std::size_t given = std::min<std::size_t>(6, sha256_hex.size() - at);
    for (std::size_t i = 0; i < 6; ++i)
      bits = bits << 4 | (i < given ? nibble(sha256_hex[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i)
      base64 += i <= given / 2 ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return fmt::format("'sha256-{}'", base64);
}

std::string static_page(std::string_view title, std::string_view style, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; "
      "base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n{}</body>\n</html>\n",
      policy_source(purlin::sha256_hex(style)), markup_escaped(title), style, body);
}

std::string svg_text(double x, double y, std::string_view text, std::string_view anchor) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor,
                     markup_escaped(text));
}

}  // namespace purlin
