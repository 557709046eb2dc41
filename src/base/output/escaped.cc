// SPDX-License-Identifier: Apache-2.0
#include "base/output/escaped.h"

#include "base/text.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace purlin {
namespace {

// Those of Terminal::paint.
constexpr std::string_view kColors[] = {"\x1b[0m",  "\x1b[1m",  "\x1b[2m",  "\x1b[31m",
                                        "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[36m"};

std::size_t color_bytes(std::string_view text) {
  for (const std::string_view color : kColors)
    if (starts_with(text, color)) return color.size();
  return 0;
}

bool is_hostile(char32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) ||  // C0, DEL, C1
         point == 0x61c || point == 0x200e || point == 0x200f ||
         (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

struct Kept {
  bool colors = false, lines = false, carriage_returns = false;  // these at the end of a line
};

std::string shown(std::string_view text, Kept kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (const std::size_t color = kept.colors ? color_bytes(text) : 0; color > 0) {
      out += text.substr(0, color);
      text.remove_prefix(color);
      continue;
    }
    if (kept.carriage_returns && starts_with(text, "\r\n")) {
      out += "\r\n";
      text.remove_prefix(2);
      continue;
    }
    const Utf8 next = first_utf8(text);
    if (!next.valid)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text.front()));
    else if (is_hostile(next.point) &&
             !(kept.lines && (next.point == U'\n' || next.point == U'\t')))
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(next.point));
    else
      out += text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
  }
  return out;
}

// A runner takes "::name::" for a command at the start of a line, after blanks, and "##[name]"
// anywhere.
std::string without_commands(std::string text) {
  bool at_start = true;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    const char* instead = at_start && starts_with(rest, "::") ? "\\u003a"
                          : starts_with(rest, "##[")          ? "\\u0023"
                                                              : nullptr;
    if (instead != nullptr) text.replace(i, 1, instead);
    const bool blank = text[i] == ' ' || text[i] == '\t';
    at_start = text[i] == '\n' || (at_start && blank);
  }
  return text;
}

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ' ' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Numeric references: no parser of Markdown sees the character, in a table or elsewhere.
std::string reference(char c) { return fmt::format("&#{};", static_cast<int>(c)); }

std::string percent_escaped(std::string_view text, bool property) {
  std::string out;
  const auto take = [&](char c) {
    if (c == '%')
      out += "%25";
    else if (c == '\n')
      out += "%0A";
    else if (c == '\t')
      out += ' ';
    else if (property && c == ':')
      out += "%3A";
    else if (property && c == ',')
      out += "%2C";
    else
      out += c;
  };
  for (const char c : shown(text, {.lines = true})) take(c);
  return out;
}

}  // namespace

std::string shown_text(std::string_view text, bool colors) {
  return without_commands(shown(text, {.colors = colors, .lines = true}));
}

std::string shown_line(std::string_view text) { return shown(text, {.colors = true}); }

std::string one_line(std::string_view text) { return shown(text, {}); }

std::string shown_data(std::string_view text) {
  return shown(text, {.lines = true, .carriage_returns = true});
}

std::string markdown_text(std::string_view text) {
  constexpr std::string_view kHarmless = ".,:;'\"/%?=-+()";
  const std::string plain = shown(text, {});
  std::string out;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const char c = plain[i];
    const bool link = c == ':' && starts_with(std::string_view(plain).substr(i), "://");
    if (c == '@' || c == '#')
      // Mentions and numbers of issues are found in the rendered text. There, code is left alone.
      out += "<code>" + reference(c) + "</code>";
    else if (!link && (is_plain(c) || kHarmless.find(c) != std::string_view::npos))
      out += c;
    else
      out += reference(c);
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  constexpr std::string_view kHarmless = ".,=-+/";
  std::string out;
  bool plain = true;
  for (const char c : shown(text, {})) {
    const bool harmless = is_plain(c) || kHarmless.find(c) != std::string_view::npos;
    plain = plain && harmless;
    out += harmless ? std::string(1, c) : reference(c);
  }
  return plain ? out : "<code>" + out + "</code>";
}

std::string workflow_message(std::string_view text) { return percent_escaped(text, false); }

std::string workflow_property(std::string_view text) { return percent_escaped(text, true); }

}  // namespace purlin
