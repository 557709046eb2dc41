// SPDX-License-Identifier: Apache-2.0
// ConstraintCache: constraints by their text, each parsed once: the entries of an op have mostly
// the same ones. Bounded, by texts and by their length. Thread-safety: one thread. Failure: what
// Expression::parse says of the text.
#pragma once

#include "model/expression/expression.h"

#include <cstddef>
#include <string>
#include <unordered_map>

namespace purlin::cache {

class ConstraintCache {
 public:
  // The answer lives until the next call.
  const Result<Expression>& parse(const std::string& text) {
    if (const auto known = parsed_.find(text); known != parsed_.end()) return known->second;
    if (parsed_.size() >= kMax || bytes_ + text.size() > kMaxBytes) {
      parsed_.clear();
      bytes_ = 0;
    }
    bytes_ += text.size();
    return parsed_.emplace(text, Expression::parse(text)).first->second;
  }
  std::size_t size() const { return parsed_.size(); }
  static constexpr std::size_t kMax = 1000, kMaxBytes = 256 << 10;

 private:
  std::size_t bytes_ = 0;
  std::unordered_map<std::string, Result<Expression>> parsed_;
};

}  // namespace purlin::cache
