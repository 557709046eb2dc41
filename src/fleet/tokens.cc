// SPDX-License-Identifier: Apache-2.0
#include "fleet/tokens.h"

#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"
#include "fleet/route.h"

#include <algorithm>
#include <cctype>
#include <sys/stat.h>

namespace purlin::fleet {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 20, kShortest = 16, kLongest = 512;

// What RFC 6750 lets a token be made of.
bool is_token(std::string_view text) {
  return text.size() >= kShortest && text.size() <= kLongest &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-._~+/=").find(c) != std::string_view::npos;
         });
}

}  // namespace

Result<Tokens> Tokens::load(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & (S_IROTH | S_IWOTH)) != 0)
    return error(Code::kInvalid,
                 "everyone on this machine can read the tokens in '{}'; chmod o-rwx it", path);
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxFile));
  return parse(text, path);
}

Result<Tokens> Tokens::parse(std::string_view text, const std::string& file) {
  Tokens tokens;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    std::vector<std::string> words;
    for (std::string& word : split(std::string(trim(line)), ' '))
      if (!word.empty()) words.push_back(std::move(word));
    if (words.empty() || starts_with(words[0], "#")) continue;
    const bool write = words[0] == "write";
    if ((!write && words[0] != "read") || words.size() < 2)
      return error(Code::kInvalid,
                   "{}:{}: a line is 'read TOKEN NAME [CACHE…]' or 'write TOKEN NAME [CACHE…]'",
                   file, number);
    if (!is_token(words[1]))
      return error(Code::kInvalid,
                   "{}:{}: a token has {} to {} letters, digits and -._~+/=; make one with: "
                   "openssl rand -hex 32",
                   file, number, kShortest, kLongest);
    Token token{words[1], words.size() > 2 ? words[2] : fmt::format("line-{}", number), {}};
    token.grant.access = write ? Access::kWrite : Access::kRead;
    for (std::size_t i = 3; i < words.size(); ++i) {
      if (!is_cache_name(words[i]))
        return error(Code::kInvalid, "{}:{}: '{}' is no name of a cache", file, number, words[i]);
      token.grant.caches.push_back(words[i]);
    }
    tokens.tokens_.push_back(std::move(token));
  }
  if (tokens.empty()) return error(Code::kInvalid, "'{}' holds no token", file);
  return tokens;
}

Tokens::Holder Tokens::find(std::string_view authorization) const {
  if (tokens_.empty()) return {"anyone", {{Access::kWrite, {}}}};
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  std::string scheme(authorization.substr(0, kScheme.size()));
  for (char& c : scheme) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (scheme != kScheme) return {};
  const std::string_view given = trim(authorization.substr(kScheme.size()));
  Holder holder;
  for (const Token& token : tokens_) {  // all of them, so that the time says nothing
    if (!equal_in_constant_time(token.secret, given)) continue;
    if (!holder.known()) holder.name = token.name;
    holder.grants.push_back(token.grant);
  }
  return holder;
}

Access Tokens::Holder::access(std::string_view cache) const {
  Access most = Access::kNone;
  for (const Grant& grant : grants)
    if (grant.caches.empty() ||
        std::find(grant.caches.begin(), grant.caches.end(), cache) != grant.caches.end())
      most = std::max(most, grant.access);
  return most;
}

}  // namespace purlin::fleet
