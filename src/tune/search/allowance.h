// SPDX-License-Identifier: Apache-2.0
// Allowance: how many evaluations a budget allows, by what those until now took.
//
// Strategies divide their budget by it. It ends no search: the session does. A budget in seconds
// is not only for the search. The start of the session comes before it, and the finals after it.
// Thread-safety: belongs to one thread. Never fails.
#pragma once

#include "tune/search/strategy.h"

#include <algorithm>
#include <cstddef>

namespace purlin::tune {

class Allowance {
 public:
  // Of the request's evaluations and seconds.
  Allowance(std::size_t evaluations, double seconds)
      : evaluations_(static_cast<double>(evaluations)), seconds_(seconds) {}

  void tell(const Outcome& outcome) {
    ++told_;
    used_s_ += outcome.used_s();
    search_s_ = outcome.left_s ? used_s_ + std::max(*outcome.left_s, 0.0) : seconds_;
  }
  // In all, those until now included; 0 = not known.
  double evaluations() const {
    if (seconds_ <= 0 || used_s_ <= 0) return evaluations_;
    const double by_time = search_s_ * told_ / used_s_;
    return evaluations_ > 0 ? std::min(evaluations_, by_time) : by_time;
  }

 private:
  double evaluations_, seconds_;
  double told_ = 0, used_s_ = 0;
  double search_s_ = 0;  // what the search may use in all
};

}  // namespace purlin::tune
