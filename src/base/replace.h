// SPDX-License-Identifier: Apache-2.0
// Every place of a word in a text, replaced. What is put in is not searched again.
#pragma once

#include <string>
#include <string_view>

namespace purlin {

inline std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

}  // namespace purlin
