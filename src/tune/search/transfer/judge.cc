// SPDX-License-Identifier: Apache-2.0
#include "tune/search/transfer/judge.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace purlin::tune {
namespace {

// By how much log odds change with one standard deviation of what the runs say. A factor of two
// from one to the next is as fine as a few configs can tell.
constexpr std::array kSlopes = {0.5, 1.0, 2.0, 4.0};

bool before(const Judged& a, const Judged& b) { return a.time && (!b.time || *a.time < *b.time); }

// Of the order of `seen`, fastest first; those that failed are last and in no order.
double log_likelihood(const std::vector<Judged>& seen, double slope) {
  double left = 0, result = 0;  // `left`: odds of all that are slower
  for (auto one = seen.rbegin(); one != seen.rend(); ++one) {
    const double odds = std::exp(-slope * one->said);
    left += odds;
    if (one->time) result += std::log(odds / left);
  }
  return result;
}

}  // namespace

double belief_in_runs(std::vector<Judged> seen) {
  std::stable_sort(seen.begin(), seen.end(), before);
  constexpr double kOther = (1 - kBelievedBefore) / 2;
  struct Case {
    double before, log_likelihood;
  };
  std::vector<Case> help, not_help = {{kOther, log_likelihood(seen, 0)}};
  for (const double slope : kSlopes) {
    help.push_back({kBelievedBefore / kSlopes.size(), log_likelihood(seen, slope)});
    not_help.push_back({kOther / kSlopes.size(), log_likelihood(seen, -slope)});
  }
  double most =
      not_help.front().log_likelihood;  // relative to it, so that nothing over- or underflows
  for (const auto* cases : {&help, &not_help})
    for (const Case& one : *cases) most = std::max(most, one.log_likelihood);
  const auto sum = [most](const std::vector<Case>& cases) {
    double total = 0;
    for (const Case& one : cases) total += one.before * std::exp(one.log_likelihood - most);
    return total;
  };
  return sum(help) / (sum(help) + sum(not_help));
}

double agreement_with_runs(const std::vector<Judged>& seen) {
  double right = 0, pairs = 0;
  for (const Judged& fast : seen)
    for (const Judged& slow : seen) {
      if (!before(fast, slow)) continue;
      right += fast.said == slow.said ? 0.5 : fast.said < slow.said ? 1 : 0;
      ++pairs;
    }
  return pairs == 0 ? 1 : right / pairs;
}

}  // namespace purlin::tune
