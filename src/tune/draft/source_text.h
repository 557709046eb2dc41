// SPDX-License-Identifier: Apache-2.0
// Small readers of source text, for drafts of specs: identifiers, brackets, lists. Pure functions;
// positions are offsets, npos = not found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::tune::source_text {

bool is_word(char character);
// Comments and texts in quotes become blanks; lines stay. `python`: # and triple quotes.
std::string without_comments(std::string_view text, bool python);
// The bracket that closes the one at `open`.
std::size_t closing(std::string_view text, std::size_t open);
// The parts between commas outside of brackets; "<" counts as one if `angles`.
std::vector<std::string> list_items(std::string_view text, bool angles = false);
std::vector<std::string> words(std::string_view text);
// The next place of a whole word.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t from = 0);
bool has_word(std::string_view text, std::string_view word);
std::size_t skip_blanks(std::string_view text, std::size_t from);
// "256", "0x10", "16u".
std::optional<std::int64_t> whole_number(std::string_view text);
std::string lower(std::string_view text);

}  // namespace purlin::tune::source_text
