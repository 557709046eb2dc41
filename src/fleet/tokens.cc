// SPDX-License-Identifier: Apache-2.0
#include "fleet/tokens.h"

#include "base/byte_size.h"
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
constexpr std::string_view kHashed = "sha256:";
constexpr unsigned kEverything = 15;

// What RFC 6750 lets a token be made of.
bool is_token(std::string_view text) {
  return text.size() >= kShortest && text.size() <= kLongest &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("-._~+/=").find(c) != std::string_view::npos;
         });
}

bool is_hash(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9');
         });
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::string& word : split(std::string(trim(line)), ' '))
    if (!word.empty()) words.push_back(std::move(word));
  if (!words.empty() && starts_with(words[0], "#")) words.clear();
  return words;
}

// With what a scope includes; 0: it is none.
unsigned scopes_of(std::string_view list) {
  unsigned scopes = 0;
  for (const std::string& name : split(list, ',')) {
    const auto* found = std::find_if(std::begin(kScopes), std::end(kScopes),
                                     [&](Scope scope) { return scope_name(scope) == name; });
    if (found == std::end(kScopes)) return 0;
    scopes |= static_cast<unsigned>(*found);
  }
  if ((scopes & static_cast<unsigned>(Scope::kAdmin)) != 0) return kEverything;
  if ((scopes & static_cast<unsigned>(Scope::kWrite)) != 0)
    scopes |= static_cast<unsigned>(Scope::kRead);
  return scopes;
}

// "requests=100", "bytes=8MiB", "body=1MiB"; false: it is no limit.
bool read_limit(std::string_view word, TokenLimits& limits) {
  const std::size_t equals = word.find('=');
  if (equals == word.npos) return false;
  const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  if (name == "requests") {
    const std::optional<double> rate = parse_double(value);
    if (!rate || !(*rate > 0)) return false;
    limits.requests_per_s = *rate;
    return true;
  }
  const std::optional<std::uint64_t> bytes = parse_bytes(std::string(value));
  if (!bytes || *bytes == 0 || (name != "bytes" && name != "body")) return false;
  if (name == "bytes") limits.bytes_per_s = static_cast<double>(*bytes);
  if (name == "body") limits.max_body = *bytes;
  return true;
}

}  // namespace

std::string_view scope_name(Scope scope) {
  switch (scope) {
    case Scope::kNone:
      return "none";
    case Scope::kIngest:
      return "ingest";
    case Scope::kRead:
      return "read";
    case Scope::kWrite:
      return "write";
    case Scope::kAdmin:
      return "admin";
  }
  return "";
}

Result<Tokens> Tokens::load(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & (S_IROTH | S_IWOTH)) != 0)
    return error(Code::kInvalid,
                 "everyone on this machine can read the tokens in '{}'; chmod o-rwx it", path);
  PURLIN_ASSIGN(const std::string text, read_file(path, kMaxFile));
  return parse(text, path);
}

// Without the place, which the caller names.
Result<Tokens::Token> Tokens::parse_line(const std::vector<std::string>& words) {
  Token token;
  token.grant.scopes = scopes_of(words[0]);
  if (token.grant.scopes == 0 || words.size() < 2)
    return error(Code::kInvalid,
                 "a line is 'SCOPE[,SCOPE…] TOKEN NAME [CACHE…] [LIMIT…]', SCOPE one of ingest, "
                 "read, write, admin");
  const std::string& secret = words[1];
  if (starts_with(secret, kHashed)) {
    token.hash = secret.substr(kHashed.size());
    if (!is_hash(token.hash))
      return error(Code::kInvalid,
                   "'sha256:' is followed by 64 hexadecimal digits; make them with "
                   "`purlin serve --hash-tokens`");
  } else if (is_token(secret)) {
    token.hash = sha256_hex(secret);
  } else {
    return error(Code::kInvalid,
                 "a token has {} to {} letters, digits and -._~+/=; make one with: openssl rand "
                 "-hex 32",
                 kShortest, kLongest);
  }
  if (words.size() > 2) token.name = words[2];
  for (std::size_t i = 3; i < words.size(); ++i) {
    if (read_limit(words[i], token.limits)) continue;
    if (!is_cache_name(words[i]))
      return error(Code::kInvalid,
                   "'{}' is no name of a cache, and no limit such as requests=100, bytes=8MiB or "
                   "body=1MiB",
                   words[i]);
    token.grant.caches.push_back(words[i]);
  }
  return token;
}

Result<Tokens> Tokens::parse(std::string_view text, const std::string& file) {
  Tokens tokens;
  std::size_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    Result<Token> token = parse_line(words);
    if (!token.is_ok()) return token.status().with_context(fmt::format("{}:{}", file, number));
    if (token->name.empty()) token.value().name = fmt::format("line-{}", number);
    tokens.tokens_.push_back(std::move(token).value());
  }
  if (tokens.empty()) return error(Code::kInvalid, "'{}' holds no token", file);
  return tokens;
}

Result<std::string> Tokens::hashed(std::string_view text, const std::string& file) {
  PURLIN_TRY(parse(text, file).status());
  std::string result;
  for (const std::string& line : split(text, '\n')) {
    std::vector<std::string> words = words_of(line);
    if (!words.empty() && !starts_with(words[1], kHashed)) {
      words[1] = std::string(kHashed) + sha256_hex(words[1]);
      result += join(words, " ");
    } else {
      result += line;
    }
    result += '\n';
  }
  // The text's last line has its end already.
  if (!text.empty() && text.back() == '\n') result.pop_back();
  return result;
}

Tokens::Holder Tokens::find(std::string_view authorization) const {
  if (tokens_.empty()) return {"anyone", "", {{kEverything, {}}}, {}};
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  std::string scheme(authorization.substr(0, kScheme.size()));
  for (char& c : scheme) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (scheme != kScheme) return {};
  const std::string given = sha256_hex(trim(authorization.substr(kScheme.size())));
  Holder holder;
  for (const Token& token : tokens_) {  // all of them, so that the time says nothing
    if (!equal_in_constant_time(token.hash, given)) continue;
    if (!holder.known()) {
      holder.name = token.name;
      holder.id = token.hash;
    }
    if (holder.limits == TokenLimits{}) holder.limits = token.limits;
    holder.grants.push_back(token.grant);
  }
  return holder;
}

bool Tokens::Grant::is_for(std::string_view cache) const {
  return caches.empty() || std::find(caches.begin(), caches.end(), cache) != caches.end();
}

unsigned Tokens::Holder::scopes(std::string_view cache) const {
  unsigned all = 0;
  for (const Grant& grant : grants)
    if (grant.is_for(cache)) all |= grant.scopes;
  return all;
}

bool Tokens::Holder::may(Scope scope, std::string_view cache) const {
  return (scopes(cache) & static_cast<unsigned>(scope)) == static_cast<unsigned>(scope);
}

}  // namespace purlin::fleet
