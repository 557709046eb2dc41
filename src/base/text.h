// SPDX-License-Identifier: Apache-2.0
// Small pure functions over text: numbers for people, splitting, spelling suggestions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace purlin {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

// Whole-text number parsing: nullopt on anything left over, overflow or emptiness.
std::optional<std::int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);
// "250ms", "60s", "2m", "1h" -> seconds. nullopt without a unit or with an unknown one.
std::optional<double> parse_duration_s(std::string_view text);

// 1234567 ns -> "1.235 ms"; always three significant decimals and a unit.
std::string format_ns(double ns);
std::string format_bytes(double bytes);  // 1536 -> "1.5 KiB"
std::string format_count(double count);  // 1234567 -> "1.23 M"
// A regular English noun in the number that goes with the count: 1, "step" -> "step"; 2, "launch"
// -> "launches"; 0, "copy" -> "copies".
std::string noun_for(double count, std::string_view noun);
// 1, "step" -> "1 step"; 1234567, "launch" -> "1.23 M launches".
std::string counted(double count, std::string_view noun);
template <class Integer>
requires std::is_integral_v<Integer> std::string counted(Integer count, std::string_view noun) {
  return counted(static_cast<double>(count), noun);
}
template <class Integer>
requires std::is_integral_v<Integer> std::string noun_for(Integer count, std::string_view noun) {
  return noun_for(static_cast<double>(count), noun);
}
// "abcdefgh" to width 5 -> "a...h". Widths are in columns of a terminal.
std::string elide_middle(std::string_view text, std::size_t width);

// Damerau-Levenshtein distance, and the candidate within a third of the word's length, or "".
int edit_distance(std::string_view a, std::string_view b);
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// C++ mangled names become readable; anything else comes back unchanged.
std::string demangle(std::string_view name);

}  // namespace purlin
