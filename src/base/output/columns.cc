// SPDX-License-Identifier: Apache-2.0
#include "base/output/columns.h"

#include "base/utf8.h"

#include <algorithm>
#include <cwchar>
#include <locale.h>

namespace purlin {
namespace {

constexpr std::string_view kColorOff = "\x1b[0m";

// wcwidth() asks the locale of the thread. The one of the process may know no wide characters.
class WideLocale {
 public:
  WideLocale() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 != nullptr) before_ = ::uselocale(utf8);
  }
  ~WideLocale() {
    if (before_ != nullptr) ::uselocale(before_);
  }
  WideLocale(const WideLocale&) = delete;
  WideLocale& operator=(const WideLocale&) = delete;

 private:
  locale_t before_ = nullptr;
};

bool is_color(std::string_view text) { return text.front() == '\x1b'; }

// The end of the first line: after it, blanks are left out. Positions are of glyphs.
std::size_t break_before(std::string_view text, std::size_t end) {
  const std::string_view line = text.substr(0, end);
  if (const std::size_t blank = line.find_last_of(' ');
      blank != std::string_view::npos && blank > 0)
    return blank;
  const std::size_t separator = line.find_last_of(",;:/_-|");
  // A short beginning would waste the line.
  return separator != std::string_view::npos && separator + 1 >= end / 2 ? separator + 1 : end;
}

}  // namespace

Glyph first_glyph(std::string_view text) {
  if (is_color(text)) {
    const std::size_t end = text.find('m');
    return {end == std::string_view::npos ? text.size() : end + 1, 0};
  }
  const Utf8 character = first_utf8(text);
  if (!character.valid || character.bytes == 1) return {1, 1};
  const WideLocale locale;
  const int columns = ::wcwidth(static_cast<wchar_t>(character.point));
  return {character.bytes, columns < 0 ? 1 : static_cast<std::size_t>(columns)};
}

std::size_t visible_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Glyph glyph = first_glyph(text);
    width += glyph.columns;
    text.remove_prefix(glyph.bytes);
  }
  return width;
}

std::size_t bytes_within(std::string_view text, std::size_t columns) {
  std::size_t at = 0, width = 0;
  while (at < text.size()) {
    const Glyph glyph = first_glyph(text.substr(at));
    if (width + glyph.columns > columns) break;
    width += glyph.columns;
    at += glyph.bytes;
  }
  return at;
}

std::vector<std::string> wrap_columns(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string color;  // that is on
  do {
    std::size_t end = bytes_within(text, std::max<std::size_t>(width, 2));
    if (end == 0) end = text.size();
    if (end < text.size() && text[end] != ' ') end = break_before(text, end);
    std::string line = color + std::string(text.substr(0, end));
    for (std::string_view rest = text.substr(0, end); !rest.empty();) {
      const Glyph glyph = first_glyph(rest);
      if (is_color(rest)) color = rest.substr(0, glyph.bytes);
      if (color == kColorOff) color.clear();
      rest.remove_prefix(glyph.bytes);
    }
    if (!color.empty()) line += kColorOff;
    lines.push_back(std::move(line));
    text.remove_prefix(end);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  } while (!text.empty());
  return lines;
}

}  // namespace purlin
