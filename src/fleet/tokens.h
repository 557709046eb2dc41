// SPDX-License-Identifier: Apache-2.0
// Tokens: who may read and who may write, by the secret in "Authorization: Bearer TOKEN".
//
// A file has one a line: `read TOKEN NAME [CACHE…]` or `write TOKEN NAME [CACHE…]`, for all caches
// where none is named. A token that may write may also read. A token on several lines has the
// rights of all its lines. The name is for the log and for messages. Immutable after loading.
// Failure: kInvalid names the file and the line; a file that everyone on the machine can read is
// refused.
#pragma once

#include "base/status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet {

enum class Access { kNone, kRead, kWrite };

class Tokens {
 public:
  static Result<Tokens> load(const std::string& path);
  static Result<Tokens> parse(std::string_view text, const std::string& file);

  bool empty() const { return tokens_.empty(); }
  struct Grant {
    Access access = Access::kNone;
    std::vector<std::string> caches{};  // empty: all of them
  };
  struct Holder {
    std::string name{};  // "" = unknown token
    std::vector<Grant> grants{};
    bool known() const { return !grants.empty(); }
    // What it may do with that cache; "": with what belongs to none.
    Access access(std::string_view cache) const;
  };
  // `authorization`: the header's value. Everyone may write where there are no tokens.
  Holder find(std::string_view authorization) const;

 private:
  struct Token {
    std::string secret, name;
    Grant grant;
  };
  std::vector<Token> tokens_;
};

}  // namespace purlin::fleet
