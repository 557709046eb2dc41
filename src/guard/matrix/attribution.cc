// SPDX-License-Identifier: Apache-2.0
#include "guard/matrix/attribution.h"

#include "base/status.h"
#include "base/text.h"
#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

namespace purlin::guard {
namespace {

constexpr double kTail = 0.025;
constexpr double kAlpha = 0.01;
constexpr int kMinRounds = 6;  // 2 * 2^-6 is the first p-value below 0.05

using Corner = unsigned;  // a bit per factor: 0 = first level, 1 = last

// A way from all first levels to all last ones over measured corners; each step changes some.
using Way = std::vector<Corner>;

class Corners {
 public:
  Corners(const std::vector<Factor>& factors, const std::vector<CellTimes>& cells) {
    for (const CellTimes& times : cells) {
      if (times.cell.size() != factors.size() || times.times_ns.empty()) continue;
      Corner corner = 0;
      bool inner = false;
      for (std::size_t i = 0; i < factors.size(); ++i) {
        const int last = static_cast<int>(factors[i].levels.size()) - 1;
        inner = inner || (times.cell[i] != 0 && times.cell[i] != last);
        // A factor of one level does not change; its bit stays clear.
        if (last > 0 && times.cell[i] == last) corner |= 1u << i;
      }
      if (!inner) at_[corner] = &times;
    }
    for (std::size_t i = 0; i < factors.size(); ++i)
      if (factors[i].levels.size() > 1) end_ |= 1u << i;
  }

  Corner end() const { return end_; }
  const CellTimes* find(Corner corner) const {
    const auto found = at_.find(corner);
    return found == at_.end() ? nullptr : found->second;
  }

  // All ways with the maximum number of steps: they separate the most factors.
  std::vector<Way> ways() const {
    std::vector<Way> best;
    Way way = {0};
    const std::function<void()> extend = [&] {
      const Corner here = way.back();
      if (here == end_) {
        if (!best.empty() && way.size() > best.front().size()) best.clear();
        if (best.empty() || way.size() == best.front().size()) best.push_back(way);
        return;
      }
      for (const auto& [next, times] : at_) {
        const bool further = next != here && (next & here) == here && (next & ~end_) == 0;
        if (!further) continue;
        way.push_back(next);
        extend();
        way.pop_back();
      }
    };
    if (find(0) != nullptr && find(end_) != nullptr) extend();
    return best;
  }

 private:
  std::map<Corner, const CellTimes*> at_;
  Corner end_ = 0;
};

double log_median(const CellTimes& times) { return std::log(median_of(times.times_ns)); }

// One value per round, exp(mean effect) with its interval. Without shared rounds: a single value.
Share share_of(const std::vector<double>& by_round, double from_medians) {
  Share share;
  share.ratio = std::exp(from_medians);
  share.low = 0;
  share.high = HUGE_VAL;
  if (static_cast<int>(by_round.size()) < kMinRounds) return share;
  const ExactInterval interval = walsh_interval(by_round, kTail);
  const SignedRank test = signed_rank_test(by_round);
  share.paired = true;
  share.ratio = std::exp(hodges_lehmann(by_round));
  share.low = std::exp(interval.low);
  share.high = std::exp(interval.high);
  share.confidence = interval.confidence;
  share.p_value = std::min(1.0, 2 * std::min(test.p_greater, test.p_less));
  return share;
}

std::string names_of(const std::vector<Factor>& factors, const std::vector<std::size_t>& which) {
  std::vector<std::string> names;
  for (const std::size_t i : which) names.push_back(factors[i].name);
  return join(names, " or ");
}

std::vector<std::size_t> factors_of(Corner bits) {
  std::vector<std::size_t> factors;
  for (std::size_t i = 0; i < 32; ++i)
    if ((bits >> i & 1u) != 0) factors.push_back(i);
  return factors;
}

// The difference of the effect of one step between its possible start corners.
double interaction_of(const Corners& corners, Corner end) {
  double most = 0;
  for (const std::size_t factor : factors_of(end)) {
    const Corner bit = 1u << factor;
    std::optional<double> low, high;
    for (Corner from = 0; from <= end; ++from) {
      if ((from & bit) != 0 || (from & ~end) != 0) continue;
      const CellTimes *a = corners.find(from), *b = corners.find(from | bit);
      if (a == nullptr || b == nullptr) continue;
      const double effect = log_median(*b) - log_median(*a);
      low = std::min(low.value_or(effect), effect);
      high = std::max(high.value_or(effect), effect);
    }
    if (low) most = std::max(most, *high - *low);
  }
  return std::exp(most);
}

void explain(const std::vector<Factor>& factors, double floor, Attribution* result) {
  const double whole = std::log(result->ratio), least = std::log1p(floor);
  const bool certain = !result->paired || result->low > 1 || result->high < 1;
  if (std::fabs(whole) < least || !certain) {
    result->reason =
        fmt::format("{:.3f}x from the first levels to the last: no change above {:.0f} %",
                    result->ratio, 100 * floor);
    return;
  }
  std::vector<const Share*> carrying;
  for (const Share& share : result->shares) {
    const double part = std::log(share.ratio);
    const bool real = !share.paired || share.p_value <= kAlpha;
    if (part * whole > 0 && std::fabs(part) >= std::max(least, 0.25 * std::fabs(whole)) && real)
      carrying.push_back(&share);
  }
  std::vector<std::string> parts;
  for (const Share& share : result->shares)
    parts.push_back(fmt::format("{} {:.3f}x", names_of(factors, share.factors), share.ratio));
  const std::string evidence = fmt::format("{:.3f}x = {}", result->ratio, join(parts, " * "));
  if (carrying.size() == 1 && carrying[0]->factors.size() == 1) {
    result->cause = factors[carrying[0]->factors[0]].kind;
    result->reason =
        fmt::format("{} did it: {}", names_of(factors, carrying[0]->factors), evidence);
  } else if (carrying.size() == 1) {
    result->cause = "mixed";
    result->reason = fmt::format("{} did it, and no measured cell separates them: {}",
                                 names_of(factors, carrying[0]->factors), evidence);
  } else {
    result->cause = "mixed";
    result->reason = fmt::format(
        "{}: {}", carrying.empty() ? "no single factor carries it" : "several factors carry it",
        evidence);
  }
  if (result->interaction > 1 + floor)
    result->reason +=
        fmt::format("; the factors act on one another, by up to {:.3f}x", result->interaction);
  if (!result->paired)
    result->reason += "; cells recorded apart are compared by their medians, which proves less";
}

}  // namespace

Attribution attribute(const std::vector<Factor>& factors, const std::vector<CellTimes>& cells,
                      double floor) {
  Attribution result;
  const Corners corners(factors, cells);
  const std::vector<Way> ways = corners.ways();
  if (ways.empty()) {
    result.reason = corners.find(0) == nullptr ? "the cell of all first levels was not measured"
                                               : "the cell of all last levels was not measured";
    return result;
  }
  // Rounds that every corner on the ways shares.
  std::size_t rounds = SIZE_MAX;
  for (const Way& way : ways)
    for (const Corner corner : way) {
      const CellTimes& times = *corners.find(corner);
      rounds = times.elsewhere ? 0 : std::min(rounds, times.times_ns.size());
      if (rounds == 0) break;
    }
  if (rounds == SIZE_MAX) rounds = 0;

  // The effect of each step's factors, averaged over the ways, per round and by medians.
  struct Sum {
    std::vector<double> by_round;
    double medians = 0;
  };
  std::map<Corner, Sum> sums;
  const double weight = 1 / static_cast<double>(ways.size());
  for (const Way& way : ways)
    for (std::size_t i = 1; i < way.size(); ++i) {
      const CellTimes &from = *corners.find(way[i - 1]), &to = *corners.find(way[i]);
      Sum& sum = sums[way[i] & ~way[i - 1]];
      sum.by_round.resize(rounds, 0);
      sum.medians += weight * (log_median(to) - log_median(from));
      for (std::size_t round = 0; round < rounds; ++round)
        sum.by_round[round] += weight * std::log(to.times_ns[round] / from.times_ns[round]);
    }
  std::vector<double> whole(rounds, 0);
  double whole_medians = 0;
  for (const auto& [bits, sum] : sums) {
    Share share = share_of(sum.by_round, sum.medians);
    share.factors = factors_of(bits);
    for (std::size_t round = 0; round < rounds; ++round) whole[round] += sum.by_round[round];
    whole_medians += sum.medians;
    result.shares.push_back(std::move(share));
  }
  const Share total = share_of(whole, whole_medians);
  result.ratio = total.ratio;
  result.low = total.low;
  result.high = total.high;
  result.paired = total.paired;
  result.interaction = interaction_of(corners, corners.end());
  std::stable_sort(result.shares.begin(), result.shares.end(), [](const Share& a, const Share& b) {
    return std::fabs(std::log(a.ratio)) > std::fabs(std::log(b.ratio));
  });
  explain(factors, floor, &result);
  return result;
}

}  // namespace purlin::guard
