// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include "base/output/escaped.h"
#include "base/text.h"

#include <algorithm>

namespace purlin {
namespace {

// What a spreadsheet takes for a formula: also behind blanks, and in full width (East Asian input).
bool is_formula(std::string_view text) {
  if (text.empty()) return false;
  if (text.front() == '\t' || text.front() == '\r') return true;
  const std::string_view rest = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  if (!rest.empty() && std::string_view("=+-@").find(rest.front()) != std::string_view::npos)
    return true;
  for (const char* wide : {"\xEF\xBC\x9D", "\xEF\xBC\x8B", "\xEF\xBC\x8D", "\xEF\xBC\xA0"})
    if (starts_with(rest, wide)) return true;
  return false;
}

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + "\"";
}

std::string csv_text(std::string_view text) {
  const bool formula = is_formula(text);
  // One row is one line, and no control character reaches a terminal that shows the file.
  const std::string line = one_line(text);
  return csv_cell(!formula || parse_double(text) ? line : "'" + line);
}

std::vector<std::string> csv_cells(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r' || quoted) {
      cells.back() += c;
    }
  }
  return cells;
}

}  // namespace purlin
