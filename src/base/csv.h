// SPDX-License-Identifier: Apache-2.0
// Cells of CSV as in RFC 4180: one written, or the cells of one line read. A quoted cell may hold
// commas and, doubled, quotes; here none spans lines. Pure functions; nothing fails: a quote that
// is never closed lasts to the end of the line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purlin {

// In quotes only where it must be.
std::string csv_cell(std::string_view text);
// The same for a file that people open: a spreadsheet runs what begins with = + - or @. Such a text
// gets an apostrophe in front; a number stays. Control characters become \uXXXX.
std::string csv_text(std::string_view text);
// At least one; a carriage return outside of quotes is left out.
std::vector<std::string> csv_cells(std::string_view line);

}  // namespace purlin
