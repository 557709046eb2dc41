// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/next_step.h"

#include "base/text.h"

namespace purlin::cli {

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string out = "'";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '\'')
      out += "'\\''";
    else
      out += byte < 0x20 || byte == 0x7f ? '?' : character;
  }
  return out + "'";
}

std::string next_step(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_word(word));
  return "next: " + join(quoted, " ") + "\n";
}

}  // namespace purlin::cli
