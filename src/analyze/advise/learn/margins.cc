// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/learn/margins.h"

#include <algorithm>
#include <iterator>

namespace purlin::analyze {
namespace {

struct MarginOfRule {
  std::string_view rule;
  Margin margin;
};
// @begin margins.py
constexpr Margin kOfAll = {0, 0};
constexpr MarginOfRule kMargins[] = {
    {"", {0, 0}},
};
// @end

}  // namespace

Margin margin_of(std::string_view rule) {
  const auto* found = std::find_if(std::begin(kMargins), std::end(kMargins),
                                   [&](const MarginOfRule& one) { return one.rule == rule; });
  return found != std::end(kMargins) ? found->margin : kOfAll;
}

void widen(const Margin& margin, double step_ns, Interval3& share, Interval3& ns) {
  const auto lower = [](double end, double by) { return std::max(std::min(end, 0.0), end - by); };
  share.low = lower(share.low, margin.below);
  ns.low = lower(ns.low, margin.below * step_ns);
  const double above = std::clamp(1 - share.high, 0.0, margin.above);
  share.high += above;
  ns.high += above * step_ns;
}

}  // namespace purlin::analyze
