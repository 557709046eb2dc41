// SPDX-License-Identifier: Apache-2.0
#include "base/regex.h"

#include <re2/re2.h>

namespace purlin {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

std::shared_ptr<const re2::RE2> compiled_by_re2(std::string_view pattern,
                                                const Regex::Options& options) {
  re2::RE2::Options re2_options;
  re2_options.set_log_errors(false);
  re2_options.set_case_sensitive(!options.ignore_case);
  if (options.syntax == Regex::Syntax::kPosix) {
    re2_options.set_posix_syntax(true);
    re2_options.set_longest_match(true);
  }
  return std::make_shared<const re2::RE2>(piece(pattern), re2_options);
}

// Whether it matches from `from` on; the groups with the match in front.
bool match_from(const re2::RE2& regex, std::string_view text, std::size_t from,
                re2::RE2::Anchor anchor, Regex::Groups* groups) {
  if (groups == nullptr) return regex.Match(piece(text), from, text.size(), anchor, nullptr, 0);
  std::vector<re2::StringPiece> found(static_cast<std::size_t>(regex.NumberOfCapturingGroups()) +
                                      1);
  if (!regex.Match(piece(text), from, text.size(), anchor, found.data(),
                   static_cast<int>(found.size())))
    return false;
  groups->clear();
  for (const re2::StringPiece& one : found) groups->emplace_back(one.data(), one.size());
  return true;
}

}  // namespace

Regex::Regex(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}

Regex::Regex(std::string_view pattern) : compiled_(compiled_by_re2(pattern, Options{})) {}

Result<Regex> Regex::compile(std::string_view pattern, const Options& options) {
  std::shared_ptr<const re2::RE2> compiled = compiled_by_re2(pattern, options);
  if (!compiled->ok()) return error(Code::kInvalid, "{}", compiled->error());
  return Regex(std::move(compiled));
}

int Regex::groups() const { return compiled_->NumberOfCapturingGroups(); }

bool Regex::search(std::string_view text, Groups* groups) const {
  return match_from(*compiled_, text, 0, re2::RE2::UNANCHORED, groups);
}

bool Regex::matches(std::string_view text, Groups* groups) const {
  return match_from(*compiled_, text, 0, re2::RE2::ANCHOR_BOTH, groups);
}

void Regex::each(std::string_view text, const std::function<void(const Groups&)>& use) const {
  Groups groups;
  for (std::size_t from = 0;
       from <= text.size() && match_from(*compiled_, text, from, re2::RE2::UNANCHORED, &groups);) {
    const auto end = static_cast<std::size_t>(groups[0].data() - text.data()) + groups[0].size();
    use(groups);
    from = groups[0].empty() ? end + 1 : end;
  }
}

}  // namespace purlin
