// SPDX-License-Identifier: Apache-2.0
#include "tune/draft/source_text.h"

#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace purlin::tune::source_text {
namespace {

// Past a text in quotes that begins at `at`.
std::size_t after_quotes(std::string_view text, std::size_t at, std::string_view quote) {
  for (std::size_t i = at + quote.size(); i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text.substr(i, quote.size()) == quote) {
      return i + quote.size();
    } else if (text[i] == '\n' && quote.size() == 1) {
      return i;
    }
  }
  return text.size();
}

// The end of the comment or quoted text at `at`; `at` where neither begins there.
std::size_t after_ignored(std::string_view text, std::size_t at, bool python) {
  const std::string_view rest = text.substr(at);
  const auto line_end = [&] { return std::min(text.find('\n', at), text.size()); };
  if (python) {
    if (rest[0] == '#') return line_end();
    for (const std::string_view quote : {"\"\"\"", "'''"})
      if (starts_with(rest, quote)) return after_quotes(text, at, quote);
    return at;  // short texts may be names of a config
  }
  if (starts_with(rest, "//")) return line_end();
  if (starts_with(rest, "/*")) return std::min(text.find("*/", at + 2), text.size() - 2) + 2;
  if (rest[0] == '"') return after_quotes(text, at, "\"");
  return at;
}

}  // namespace

bool is_word(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_';
}

std::string without_comments(std::string_view text, bool python) {
  std::string out(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(after_ignored(text, at, python), text.size());
    for (std::size_t i = at; i < end; ++i)
      if (text[i] != '\n') out[i] = ' ';
    at = std::max(end, at + 1);
  }
  return out;
}

std::size_t closing(std::string_view text, std::size_t open) {
  if (open >= text.size()) return text.npos;
  const std::string_view kOpen = "([{<", kClose = ")]}>";
  const std::size_t kind = kOpen.find(text[open]);
  if (kind == kOpen.npos) return text.npos;
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == kOpen[kind]) ++depth;
    if (text[i] == kClose[kind] && --depth == 0) return i;
  }
  return text.npos;
}

std::vector<std::string> list_items(std::string_view text, bool angles) {
  std::vector<std::string> items;
  std::string item;
  int depth = 0;
  for (const char character : text) {
    if (std::string_view("([{").find(character) != std::string_view::npos) ++depth;
    if (std::string_view(")]}").find(character) != std::string_view::npos) --depth;
    if (angles && character == '<') ++depth;
    if (angles && character == '>') --depth;
    if (character == ',' && depth == 0) {
      items.emplace_back(trim(item));
      item.clear();
    } else {
      item += character;
    }
  }
  if (!trim(item).empty()) items.emplace_back(trim(item));
  return items;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i) found.emplace_back(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return found;
}

std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) {
  for (std::size_t at = from; (at = text.find(word, at)) != text.npos; at += word.size()) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end >= text.size() || !is_word(text[end])))
      return at;
  }
  return text.npos;
}

bool has_word(std::string_view text, std::string_view word) {
  return find_word(text, word) != text.npos;
}

std::size_t skip_blanks(std::string_view text, std::size_t from) {
  while (from < text.size() && std::isspace(static_cast<unsigned char>(text[from])) != 0) ++from;
  return from;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  text = trim(text);
  while (!text.empty() && std::string_view("uUlL").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  const bool hexadecimal = starts_with(text, "0x");
  if (hexadecimal) text.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (failed != std::errc() || end != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& character : out)
    character = static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
  return out;
}

}  // namespace purlin::tune::source_text
