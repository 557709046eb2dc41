// SPDX-License-Identifier: Apache-2.0
// ConstraintCache: constraints by their text, each parsed once. The entries of an op mostly have
// the same constraints. The number of texts and their length are bounded. Thread-safety: one
// thread. Failure: the status that Expression::parse returns for the text.
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
