// SPDX-License-Identifier: Apache-2.0
#include "tune/session/verdict.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace purlin::tune {
namespace {

constexpr double kClaimConfidence = 0.99;
// The fewest whose range has that confidence. Ranges of fewer have to lie further apart: by more
// than either is wide.
constexpr std::size_t kClaimSamples = 8;
// Ranges of two or three rounds have to lie apart by this multiple of the widest: what a t-test
// asks for at 99.9 %.
constexpr double kFewRounds[] = {0, 0, 15, 2.5};
// A clock that changes now and then is not seen in so few rounds. By then a lead has to be larger
// to count, and one that the clock may explain is worth more rounds.
constexpr double kLeadUnseen = 0.1, kClockChange = 1. / 3;
// Clocks that drift or throttle change times by up to a third; another state changes them by more.
constexpr double kMachineChange = 1.5;
constexpr std::size_t kChangeSamples = 5;  // the fewest, of each, whose medians compare

const Finalist* default_of(const std::vector<Finalist>& finalists) {
  const auto found = std::find_if(finalists.begin(), finalists.end(), [](const Finalist& f) {
    return f.is_default && f.problem.empty();
  });
  return found == finalists.end() ? nullptr : &*found;
}

double width(const measure::Interval& interval) { return interval.high - interval.low; }

std::size_t common_rounds(const Finalist& fast, const Finalist& slow) {
  return std::min(fast.by_round.size(), slow.by_round.size());
}

bool are_rounds_apart(const Finalist& fast, const Finalist& slow, const Unsteadiness& unsteady) {
  const std::size_t rounds = common_rounds(fast, slow);
  if (rounds == 0) return true;
  const measure::Interval low = measure::median_interval_ms(fast.by_round, kClaimConfidence);
  const measure::Interval high = measure::median_interval_ms(slow.by_round, kClaimConfidence);
  const double gap = high.low - low.high;
  if (rounds >= kClaimSamples) return gap > 0;
  if (rounds < std::size(kFewRounds) && gap <= kLeadUnseen * high.low) return false;
  const double widest = std::max({width(low), width(high), unsteady.rounds * high.low});
  const double factor = rounds < std::size(kFewRounds) ? kFewRounds[rounds] : 1;
  return gap > std::max(factor * widest, unsteady.search * high.low);
}

// Whether further rounds would not change that they are apart.
bool stays_apart(const Finalist& fast, const Finalist& slow, const Unsteadiness& unsteady) {
  if (!is_apart(fast, slow, unsteady)) return false;
  const std::size_t rounds = common_rounds(fast, slow);
  return rounds == 0 || rounds >= std::size(kFewRounds) ||
         median_ms(fast.values) < median_ms(slow.values) * (1 - kClockChange);
}

bool do_overlap(const measure::Interval& a, const measure::Interval& b) {
  return a.low <= b.high && b.low <= a.high;
}

// The indices of those among whom the winner is chosen; sorted finalists have the lowest first.
std::vector<std::size_t> leaders(const std::vector<Finalist>& finalists, double tie_cap) {
  const Finalist* const fallback = default_of(finalists);
  const Unsteadiness unsteady = unsteadiness(finalists);
  std::vector<std::size_t> able;
  for (std::size_t i = 0; i < finalists.size(); ++i)
    if (finalists[i].can_win() &&
        (fallback == nullptr || is_apart(finalists[i], *fallback, unsteady)))
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

Unsteadiness unsteadiness(const std::vector<Finalist>& finalists) {
  Unsteadiness most;
  std::vector<Sample> changes;
  for (const Finalist& finalist : finalists) {
    if (finalist.by_round.empty()) continue;  // of a recording
    const double median = median_ms(finalist.by_round);
    if (!(median > 0)) continue;
    if (finalist.by_round.size() > 1)
      most.rounds = std::max(
          most.rounds,
          width(measure::median_interval_ms(finalist.by_round, kClaimConfidence)) / median);
    if (finalist.searched > 0) changes.push_back({median / finalist.searched, 0});
  }
  if (changes.empty()) return most;
  const double common = median_ms(changes);
  for (const Sample& change : changes)
    most.search = std::max(most.search, std::abs(change.ms / common - 1));
  return most;
}

bool is_apart(const Finalist& fast, const Finalist& slow, const Unsteadiness& unsteady) {
  if (!are_rounds_apart(fast, slow, unsteady)) return false;
  const measure::Interval low = measure::median_interval_ms(fast.values, kClaimConfidence);
  const measure::Interval high = measure::median_interval_ms(slow.values, kClaimConfidence);
  const double gap = high.low - low.high;
  if (std::min(fast.values.size(), slow.values.size()) >= kClaimSamples) return gap > 0;
  return gap > std::max(width(low), width(high));
}

bool is_open(const std::vector<Finalist>& finalists, double tie_cap) {
  const Finalist* const fallback = default_of(finalists);
  if (fallback == nullptr || fallback->values.empty()) return false;
  bool ahead = false;
  const Unsteadiness unsteady = unsteadiness(finalists);
  const double bound = median_ms(fallback->values) / (1 + tie_cap);
  for (const Finalist& finalist : finalists) {
    if (&finalist == fallback || !finalist.can_win() || finalist.values.empty()) continue;
    if (median_ms(finalist.values) >= bound) continue;
    if (stays_apart(finalist, *fallback, unsteady)) return false;
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
