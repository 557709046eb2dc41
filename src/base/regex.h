// SPDX-License-Identifier: Apache-2.0
// Regular expressions, in one dialect everywhere: RE2's. Time is linear in the text for every
// expression, so patterns of users and texts of strangers are safe. There are no back-references
// and no look-around.
//
// Texts are UTF-8; other bytes match no character. A Regex is a value, cheap to copy. Const
// functions are safe from several threads.
#pragma once

#include "base/status.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace purlin {

class Regex {
 public:
  enum class Syntax {
    kFull,
    kPosix,  // only what POSIX extended expressions have too, with the same meaning
  };
  struct Options {
    bool ignore_case = false;
    Syntax syntax = Syntax::kFull;
  };
  // The match, then the groups. A group without a part in the match has a null data().
  using Groups = std::vector<std::string_view>;

  // kInvalid with the reason, which names no pattern.
  static Result<Regex> compile(std::string_view pattern, const Options& options);
  static Result<Regex> compile(std::string_view pattern) { return compile(pattern, Options{}); }
  // A pattern of the program itself, which compiles.
  explicit Regex(std::string_view pattern);

  int groups() const;
  // Somewhere in the text. Views are into the text.
  bool search(std::string_view text, Groups* groups = nullptr) const;
  // The whole text.
  bool matches(std::string_view text, Groups* groups = nullptr) const;
  // All matches in order, none over another.
  void each(std::string_view text, const std::function<void(const Groups&)>& use) const;

 private:
  explicit Regex(std::shared_ptr<const re2::RE2> compiled);

  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace purlin
