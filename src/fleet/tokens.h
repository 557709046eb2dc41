// SPDX-License-Identifier: Apache-2.0
// Tokens: who may do what, by the secret in "Authorization: Bearer TOKEN".
//
// A file has one a line: `SCOPE[,SCOPE…] TOKEN NAME [CACHE…] [LIMIT…]`, for all caches where none
// is named (docs/guide/serve.md). TOKEN is the secret or `sha256:` and its hash. Only hashes are
// held in memory. A token on several lines has the rights of all its lines. Immutable after
// loading. Failure: kInvalid names the file and the line; a file that everyone on the machine can
// read is refused.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet {

enum class Scope : std::uint8_t {
  kNone = 0,    // no token is needed
  kIngest = 1,  // send batches and raw profiles
  kRead = 2,    // all queries, and caches
  kWrite = 4,   // caches, leases, guard runs; reads, too
  kAdmin = 8,   // retention and checks; everything else, too
};
inline constexpr Scope kScopes[] = {Scope::kIngest, Scope::kRead, Scope::kWrite, Scope::kAdmin};
std::string_view scope_name(Scope scope);  // "ingest"

// What a token may ask for in a second, and at once; 0 = no limit.
struct TokenLimits {
  double requests_per_s = 0, bytes_per_s = 0;
  std::uint64_t max_body = 0;
  bool operator==(const TokenLimits&) const = default;
};

class Tokens {
 public:
  static Result<Tokens> load(const std::string& path);
  static Result<Tokens> parse(std::string_view text, const std::string& file);
  // The text of a file with each secret replaced by its hash; comments stay.
  static Result<std::string> hashed(std::string_view text, const std::string& file);

  bool empty() const { return tokens_.empty(); }
  struct Grant {
    unsigned scopes = 0;                // of Scope, with what they include
    std::vector<std::string> caches{};  // empty: all of them
    bool is_for(std::string_view cache) const;
  };
  struct Holder {
    std::string name{};  // "" = unknown token
    std::string id{};    // the token's hash; "" where there are no tokens
    std::vector<Grant> grants{};
    TokenLimits limits{};
    bool known() const { return !grants.empty(); }
    // What it may do with that cache, of Scope; "": with what belongs to none.
    unsigned scopes(std::string_view cache) const;
    bool may(Scope scope, std::string_view cache) const;
  };
  // `authorization`: the header's value. Everyone may do everything where there are no tokens.
  Holder find(std::string_view authorization) const;

 private:
  struct Token {
    std::string hash, name;  // SHA-256, hexadecimal
    Grant grant;
    TokenLimits limits;
  };
  static Result<Token> parse_line(const std::vector<std::string>& words);
  std::vector<Token> tokens_;
};

}  // namespace purlin::fleet
