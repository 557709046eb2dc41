// SPDX-License-Identifier: Apache-2.0
#include "tune/session/verdict.h"

#include <algorithm>
#include <cmath>

namespace purlin::tune {
namespace {

constexpr double kClaimConfidence = 0.99;
// The fewest whose range has that confidence. Ranges of fewer have to lie further apart: by more
// than either is wide.
constexpr std::size_t kClaimSamples = 8;
// Clocks that drift or throttle change times by up to a third; another state changes them by more.
constexpr double kMachineChange = 1.5;
constexpr std::size_t kChangeSamples = 5;  // the fewest, of each, whose medians compare

const Finalist* default_of(const std::vector<Finalist>& finalists) {
  const auto found = std::find_if(finalists.begin(), finalists.end(), [](const Finalist& f) {
    return f.is_default && f.problem.empty();
  });
  return found == finalists.end() ? nullptr : &*found;
}

bool do_overlap(const measure::Interval& a, const measure::Interval& b) {
  return a.low <= b.high && b.low <= a.high;
}

// The indices of those among whom the winner is chosen; sorted finalists have the lowest first.
std::vector<std::size_t> leaders(const std::vector<Finalist>& finalists, double tie_cap) {
  const Finalist* const fallback = default_of(finalists);
  std::vector<std::size_t> able;
  for (std::size_t i = 0; i < finalists.size(); ++i)
    if (finalists[i].can_win() && (fallback == nullptr || is_apart(finalists[i], *fallback)))
      able.push_back(i);
  if (able.empty()) {
    const Finalist& chosen = fallback != nullptr ? *fallback : finalists.front();
    return {static_cast<std::size_t>(&chosen - finalists.data())};
  }
  const Finalist& lowest = finalists[able.front()];
  std::erase_if(able, [&](std::size_t i) {
    return finalists[i].interval.low > lowest.interval.high ||
           finalists[i].value > lowest.value * (1 + tie_cap);
  });
  return able;
}

}  // namespace

bool is_apart(const Finalist& fast, const Finalist& slow) {
  const measure::Interval low = measure::median_interval_ms(fast.values, kClaimConfidence);
  const measure::Interval high = measure::median_interval_ms(slow.values, kClaimConfidence);
  const double gap = high.low - low.high;
  if (std::min(fast.values.size(), slow.values.size()) >= kClaimSamples) return gap > 0;
  return gap > std::max(low.high - low.low, high.high - high.low);
}

bool is_open(const std::vector<Finalist>& finalists, double tie_cap) {
  const Finalist* const fallback = default_of(finalists);
  if (fallback == nullptr || fallback->values.empty()) return false;
  bool ahead = false;
  const double bound = median_ms(fallback->values) / (1 + tie_cap);
  for (const Finalist& finalist : finalists) {
    if (&finalist == fallback || !finalist.can_win() || finalist.values.empty()) continue;
    if (median_ms(finalist.values) >= bound) continue;
    if (is_apart(finalist, *fallback)) return false;
    ahead = true;
  }
  return ahead;
}

void decide(Verdicts& verdict, const Space& space, const std::vector<Evaluation>& evaluations,
            double tie_cap) {
  std::vector<Finalist>& finalists = verdict.finalists;
  std::stable_sort(finalists.begin(), finalists.end(), [](const Finalist& a, const Finalist& b) {
    if (a.problem.empty() != b.problem.empty()) return a.problem.empty();
    return a.value < b.value;
  });
  const auto place = [&](std::size_t i) {
    return space.find(evaluations[finalists[i].evaluation].config).value_or(space.size());
  };
  const std::vector<std::size_t> equals = leaders(finalists, tie_cap);
  verdict.winner =
      *std::min_element(equals.begin(), equals.end(),
                        [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  const Finalist& best = finalists[verdict.winner];
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    if (finalists[i].is_default && finalists[i].problem.empty()) verdict.fallback = i;
    if (i != verdict.winner && finalists[i].can_win() &&
        do_overlap(finalists[i].interval, best.interval) &&
        finalists[i].value <= best.value * (1 + tie_cap))
      verdict.ties.push_back(i);
  }
}

double machine_change(const std::vector<Finalist>& finalists,
                      const std::vector<Evaluation>& evaluations) {
  std::vector<Sample> ratios;
  std::size_t slower = 0, faster = 0;
  for (const Finalist& finalist : finalists) {
    const Evaluation& searched = evaluations[finalist.evaluation];
    if (!finalist.problem.empty() || searched.raced_out || !(searched.time_ms > 0) ||
        std::min(finalist.samples.size(), searched.samples.size()) < kChangeSamples)
      continue;
    const measure::Interval then = measure::median_interval_ms(searched.samples);
    const measure::Interval now = measure::median_interval_ms(finalist.samples);
    slower += now.low > then.high ? 1 : 0;
    faster += now.high < then.low ? 1 : 0;
    ratios.push_back({median_ms(finalist.samples) / searched.time_ms, 0});
  }
  if (2 * std::max(slower, faster) <= ratios.size()) return 1;
  const double ratio = median_ms(ratios);
  return ratio > kMachineChange || ratio < 1 / kMachineChange ? ratio : 1;
}

}  // namespace purlin::tune
