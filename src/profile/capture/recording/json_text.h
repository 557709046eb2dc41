// SPDX-License-Identifier: Apache-2.0
// JSON as text, for the few small documents the capture libraries write: they do not link base/.
// Bytes that are not UTF-8 are escaped one by one, so the result is always valid JSON. A value
// type.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace purlin::profile::capture {

// Checks lengths and continuation bytes only: parsers fail on those.
inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    const int more = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if (more < 0 || lead > 0xf4 || text.size() - i < static_cast<std::size_t>(more)) return false;
    for (int k = 0; k < more; ++k)
      if ((static_cast<unsigned char>(text[i++]) & 0xc0) != 0x80) return false;
  }
  return true;
}

inline std::string quoted(std::string_view text) {
  const bool plain = is_utf8(text);
  std::string out = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !plain)) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += character;
    }
  }
  return out + '"';
}

class JsonText {
 public:
  JsonText& text(std::string_view key, std::string_view value) { return raw(key, quoted(value)); }
  JsonText& integer(std::string_view key, std::int64_t value) {
    return raw(key, std::to_string(value));
  }
  JsonText& real(std::string_view key, double value) {
    char number[40];
    std::snprintf(number, sizeof number, "%.17g", std::isfinite(value) ? value : 0);
    for (char& character : number)
      if (character == ',') character = '.';  // the program may have set a locale
    return raw(key, number);
  }
  JsonText& raw(std::string_view key, std::string_view json) {
    if (!body_.empty()) body_ += ',';
    body_ += quoted(key);
    body_ += ':';
    body_ += json;
    return *this;
  }
  std::string finish() const { return '{' + body_ + '}'; }

 private:
  std::string body_;
};

}  // namespace purlin::profile::capture
