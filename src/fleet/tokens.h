// SPDX-License-Identifier: Apache-2.0
// Tokens: who may read and who may write, by the secret in "Authorization: Bearer TOKEN".
//
// A file has one a line: `read TOKEN NAME` or `write TOKEN NAME`; whoever may write may read. The
// name is for the log. Immutable after loading. Failure: kInvalid names the file and the line;
// a file that everyone on the machine can read is refused.
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
  struct Holder {
    Access access = Access::kNone;
    std::string name{};
  };
  // `authorization`: the header's value. Everyone may write where there are no tokens.
  Holder find(std::string_view authorization) const;

 private:
  struct Token {
    Access access;
    std::string secret, name;
  };
  std::vector<Token> tokens_;
};

}  // namespace purlin::fleet
