// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_dialect.h"

#include <array>
#include <cstddef>

namespace purlin {
namespace {

// The end of the text that begins at `at` with its quote; the document's end where it is cut.
std::size_t past_text(std::string_view json, std::size_t at) {
  for (++at; at < json.size(); ++at) {
    if (json[at] == '\\')
      ++at;
    else if (json[at] == '"')
      return at + 1;
  }
  return json.size();
}

}  // namespace

std::string without_non_finite(std::string_view json) {
  constexpr std::array<std::string_view, 3> kWords = {"-Infinity", "Infinity", "NaN"};
  std::string valid;
  valid.reserve(json.size());
  std::size_t copied = 0;
  const auto copy_to = [&](std::size_t end) {
    valid += json.substr(copied, end - copied);
    copied = end;
  };
  for (std::size_t at = json.find_first_of("\"-IN"); at < json.size();
       at = json.find_first_of("\"-IN", at)) {
    if (json[at] == '"') {
      at = past_text(json, at);
      continue;
    }
    std::size_t length = 1;
    for (const std::string_view word : kWords) {
      if (json.substr(at, word.size()) != word) continue;
      copy_to(at);
      valid += "null";
      length = word.size();
      copied = at + length;
      break;
    }
    at += length;
  }
  copy_to(json.size());
  return valid;
}

std::string closed_json(std::string_view json, std::size_t depth) {
  std::string open, kept;  // closing brackets, the innermost last
  std::size_t complete = 0;
  for (std::size_t at = json.find_first_of("\"{}[]"); at < json.size();
       at = json.find_first_of("\"{}[]", at)) {
    const char c = json[at];
    if (c == '"') {
      at = past_text(json, at);
      continue;
    }
    ++at;
    if (c == '{' || c == '[') {
      open += c == '{' ? '}' : ']';
      continue;
    }
    if (open.empty() || open.back() != c) return "";
    open.pop_back();
    if (open.size() == depth) {
      complete = at;
      kept = open;
    }
  }
  if (open.empty() || complete == 0) return "";
  return std::string(json.substr(0, complete)) + std::string(kept.rbegin(), kept.rend());
}

}  // namespace purlin
