// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/step_spread.h"

#include <algorithm>
#include <cstddef>
#include <random>

namespace purlin::analyze {
namespace {

constexpr std::size_t kFewestSteps = 4, kDraws = 200;
constexpr double kTail = 0.1;

}  // namespace

StepSpread spread_over_steps(const std::vector<std::uint32_t>& nodes,
                             const std::vector<double>& before, const std::vector<double>& after) {
  if (nodes.size() < kFewestSteps) return {};
  std::vector<double> was, is;
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    was.push_back(before[nodes[i]] - before[nodes[i - 1]]);
    is.push_back(after[nodes[i]] - after[nodes[i - 1]]);
  }
  const auto share_of = [&](const auto& pick) {
    double before_ns = 0, after_ns = 0;
    for (std::size_t i = 0; i < was.size(); ++i) {
      const std::size_t step = pick(i);
      before_ns += was[step];
      after_ns += is[step];
    }
    return before_ns > 0 ? 1 - after_ns / before_ns : 0.0;
  };
  std::minstd_rand random(1);  // the same draws on every machine
  std::vector<double> shares;
  for (std::size_t draw = 0; draw < kDraws; ++draw)
    shares.push_back(share_of([&](std::size_t) { return random() % was.size(); }));
  std::sort(shares.begin(), shares.end());
  const auto tail = static_cast<std::size_t>(kTail * static_cast<double>(kDraws));
  const double all = share_of([](std::size_t i) { return i; });
  return {std::max(0.0, all - shares[tail]), std::max(0.0, shares[kDraws - 1 - tail] - all)};
}

}  // namespace purlin::analyze
