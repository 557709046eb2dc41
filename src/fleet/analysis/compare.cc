// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/compare.h"

#include "base/random.h"
#include "base/status.h"
#include "fleet/analysis/role.h"
#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace purlin::fleet::analysis {
namespace {

constexpr int kPermutations = 99999;
constexpr double kTail = 0.01;  // of an interval's each side

struct Inference {
  double centre = 0, low = 0, high = 0, confidence = 0, p_value = 1;
};

Inference of_pairs(const std::vector<double>& shifts) {
  const guard::SignedRank test = guard::signed_rank_test(shifts);
  const guard::ExactInterval interval = guard::walsh_interval(shifts, kTail);
  return {guard::hodges_lehmann(shifts), interval.low, interval.high, interval.confidence,
          std::min(1.0, 2 * std::min(test.p_greater, test.p_less))};
}

std::vector<double> mid_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0, j = 0; i < order.size(); i = j) {
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) ranks[order[k]] = static_cast<double>(i + j + 1) / 2;
  }
  return ranks;
}

// The share of relabelings with a rank sum as far from its mean. Stops when it is clearly large.
double rank_sum_p(const std::vector<double>& before, const std::vector<double>& after) {
  std::vector<double> all = before;
  all.insert(all.end(), after.begin(), after.end());
  std::vector<double> ranks = mid_ranks(all);
  const double mean = static_cast<double>(after.size()) * static_cast<double>(all.size() + 1) / 2;
  const auto distance = [&] {
    return std::fabs(std::accumulate(ranks.begin() + static_cast<std::ptrdiff_t>(before.size()),
                                     ranks.end(), 0.0) -
                     mean);
  };
  const double found = distance() - 1e-9;
  Random random(1);
  int as_far = 0, done = 0;
  while (done < kPermutations && as_far < 100) {
    random.shuffle(ranks);
    as_far += distance() >= found;
    ++done;
  }
  return static_cast<double>(as_far + 1) / (done + 1);
}

Inference of_two_samples(const std::vector<double>& before, const std::vector<double>& after) {
  std::vector<double> differences;
  for (const double b : before)
    for (const double a : after) differences.push_back(a - b);
  std::sort(differences.begin(), differences.end());
  const double m = static_cast<double>(before.size()), n = static_cast<double>(after.size());
  constexpr double kZ = 2.326;  // 98 %
  const double cut = m * n / 2 - kZ * std::sqrt(m * n * (m + n + 1) / 12);
  const std::size_t skip =
      cut < 1 ? 0 : std::min(static_cast<std::size_t>(cut) - 1, differences.size() / 2);
  return {guard::median_of(differences), differences[skip],
          differences[differences.size() - 1 - skip], 0.98, rank_sum_p(before, after)};
}

// The strata that both sides have with enough launches.
Strata common_references(const Strata& before, const Strata& after, const Needs& needs) {
  Strata common;
  for (const auto& [key, old] : before) {
    const auto found = after.find(key);
    if (found == after.end() || old.count() < needs.cell_launches ||
        found->second.count() < needs.cell_launches)
      continue;
    common[key].merge(old);
    common[key].merge(found->second);
  }
  return common;
}

std::vector<double> levels_against(const NodeStrata& nodes, const Strata& reference,
                                   const Needs& needs) {
  std::vector<double> levels;
  for (const auto& [name, strata] : nodes) {
    const Shift shift = shift_of(reference, strata, needs);
    if (shift.strata > 0) levels.push_back(shift.log_ratio);
  }
  return levels;
}

// A kernel that only one side has is not compared.
struct Sides {
  const NodeStrata* before;
  const NodeStrata* after;
};

void describe(KernelComparison* row, const Strata& before, const Strata& after,
              const Needs& needs) {
  Sketch all_before, all_after;
  for (const auto& [key, sketch] : before) all_before.merge(sketch);
  for (const auto& [key, sketch] : after) all_after.merge(sketch);
  row->launches_before = all_before.count(), row->launches_after = all_after.count();
  row->gpu_s_before = all_before.total_ns() * 1e-9, row->gpu_s_after = all_after.total_ns() * 1e-9;
  row->mixed_ratio = std::exp(log_p50(all_after) - log_p50(all_before));
  const Shift common = shift_of(before, after, needs);
  row->common_share = std::min(common.common_before_ns / std::max(all_before.total_ns(), 1.0),
                               common.common_after_ns / std::max(all_after.total_ns(), 1.0));
}

std::string thin_reason(const KernelComparison& row, const Needs& needs) {
  const double launches = std::min(row.launches_before, row.launches_after);
  if (launches < needs.launches)
    return fmt::format("one side has {:.0f} launches; {:.0f} are needed", launches, needs.launches);
  if (row.common_share < needs.common_share)
    return fmt::format(
        "only {:.0f} % of one side's GPU time is in shapes that both sides have; {:.0f} % are "
        "needed",
        row.common_share * 100, needs.common_share * 100);
  return "";
}

void infer(KernelComparison* row, const Sides& sides, const Needs& needs) {
  std::vector<double> shifts;
  for (const auto& [node, strata] : *sides.before) {
    const auto found = sides.after->find(node);
    if (found == sides.after->end()) continue;
    const Shift shift = shift_of(strata, found->second, needs);
    if (shift.strata > 0) shifts.push_back(shift.log_ratio);
  }
  row->nodes_before = static_cast<int>(sides.before->size());
  row->nodes_after = static_cast<int>(sides.after->size());
  row->nodes_paired = static_cast<int>(shifts.size());
  Inference found;
  if (row->nodes_paired >= needs.nodes) {
    row->paired = true;
    found = of_pairs(shifts);
  } else {
    const Strata reference = common_references(merged(*sides.before), merged(*sides.after), needs);
    const std::vector<double> before = levels_against(*sides.before, reference, needs);
    const std::vector<double> after = levels_against(*sides.after, reference, needs);
    const std::size_t fewest = std::min(before.size(), after.size());
    if (fewest < static_cast<std::size_t>(needs.nodes)) {
      row->refused = fmt::format(
          "{} have both sides, and one side has {}; {} are needed",
          row->nodes_paired == 1 ? "1 node" : fmt::format("{} nodes", row->nodes_paired), fewest,
          needs.nodes);
      return;
    }
    found = of_two_samples(before, after);
  }
  row->ratio = std::exp(found.centre);
  row->low = std::exp(found.low), row->high = std::exp(found.high);
  row->confidence = found.confidence;
  row->p_value = found.p_value;
}

Change decided(const KernelComparison& row, bool significant, double magnitude) {
  if (significant && row.ratio >= 1 + magnitude) return Change::kSlower;
  if (significant && row.ratio <= 1 / (1 + magnitude)) return Change::kFaster;
  if (row.high < 1 + magnitude && row.low > 1 / (1 + magnitude)) return Change::kSame;
  return Change::kOpen;
}

}  // namespace

std::string_view to_text(Change change) {
  switch (change) {
    case Change::kSlower:
      return "slower";
    case Change::kFaster:
      return "faster";
    case Change::kSame:
      return "same";
    case Change::kOpen:
      return "open";
    case Change::kRefused:
      break;
  }
  return "refused";
}

std::vector<bool> holm(const std::vector<double>& p_values, double alpha) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<bool> stands(p_values.size(), false);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (p_values[order[i]] > alpha / static_cast<double>(order.size() - i)) break;
    stands[order[i]] = true;
  }
  return stands;
}

Comparison compare(const std::vector<Cell>& before, const std::vector<Cell>& after,
                   const std::vector<CoverageCell>& coverage, const CompareOptions& options) {
  Comparison result;
  if (!coverage.empty()) result.refused = too_thin(summarise(coverage), options.needs);
  if (result.refused) return result;
  const std::map<KernelKey, NodeStrata> old = by_kernel(before), now = by_kernel(after);
  std::vector<double> p_values;
  std::vector<std::size_t> tested;
  for (const auto& [key, nodes] : old) {
    const auto found = now.find(key);
    if (found == now.end()) continue;
    KernelComparison row;
    row.key = key;
    row.role = role_of(key.kernel, "");
    describe(&row, merged(nodes), merged(found->second), options.needs);
    row.refused = thin_reason(row, options.needs);
    if (row.refused.empty()) infer(&row, {&nodes, &found->second}, options.needs);
    if (row.refused.empty()) {
      tested.push_back(result.kernels.size());
      p_values.push_back(row.p_value);
    }
    result.kernels.push_back(std::move(row));
  }
  if (result.kernels.empty()) result.refused = "the two sides have no kernel in common";
  const std::vector<bool> stands = holm(p_values, options.alpha);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    KernelComparison& row = result.kernels[tested[i]];
    row.change = decided(row, stands[i], options.min_magnitude);
  }
  std::stable_sort(result.kernels.begin(), result.kernels.end(),
                   [](const KernelComparison& a, const KernelComparison& b) {
                     return a.gpu_s_before + a.gpu_s_after > b.gpu_s_before + b.gpu_s_after;
                   });
  return result;
}

}  // namespace purlin::fleet::analysis
