// SPDX-License-Identifier: Apache-2.0
// Columns that text takes on a terminal: East-Asian wide characters take two, combining characters
// none. The locale of the process does not matter. Pure functions; invalid UTF-8 takes one column a
// byte. [MT]
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

struct Glyph {
  std::size_t bytes = 0, columns = 0;
};
// The character, or the escape sequence of a colour, that begins a text which is not empty.
Glyph first_glyph(std::string_view text);

// Escape sequences count nothing.
std::size_t visible_width(std::string_view text);
// The bytes of the longest beginning that is at most `columns` wide.
std::size_t bytes_within(std::string_view text, std::size_t columns);

// The text in lines of at most `width` columns, with nothing left out: broken at blanks, else after
// a separator, else anywhere. A colour that is on at a break ends there and begins again.
std::vector<std::string> wrap_columns(std::string_view text, std::size_t width);

}  // namespace purlin
