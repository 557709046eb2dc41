// SPDX-License-Identifier: Apache-2.0
#include "guard/history/change_points.h"

#include "base/random.h"
#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace purlin::guard {
namespace {

// A stretch of a series that stands out from the rest of it.
struct Arc {
  std::size_t begin = 0, end = 0;
  double statistic =
      0;  // squared difference of the means, weighted: (in - out)^2 * m * (n - m) / n
};

// The best arc. An arc at an end of the series is a step. An inner arc is a bump, which no single
// split would show. Both ends leave `least` points or none outside.
Arc best_arc(const std::vector<double>& centered, std::size_t least) {
  const std::size_t n = centered.size();
  std::vector<double> sums(n + 1, 0);  // the series sums to 0, so the sum of an arc suffices
  std::partial_sum(centered.begin(), centered.end(), sums.begin() + 1);
  Arc best;
  const double points = static_cast<double>(n);
  for (std::size_t begin = 0; begin + least <= n; ++begin) {
    if (begin > 0 && begin < least) continue;
    for (std::size_t end = begin + least; end <= n; ++end) {
      if (end < n && n - end < least) continue;
      const double m = static_cast<double>(end - begin);
      if (n - (end - begin) < least) continue;
      const double sum = sums[end] - sums[begin];
      const double statistic = sum * sum * points / (m * (points - m));
      if (statistic > best.statistic) best = {begin, end, statistic};
    }
  }
  return best;
}

// Mean square of the differences at a lag, without the largest quarter, which holds the steps.
double trimmed_square(const std::vector<double>& values, std::size_t lag) {
  std::vector<double> squares;
  for (std::size_t i = lag; i < values.size(); ++i)
    squares.push_back((values[i] - values[i - lag]) * (values[i] - values[i - lag]));
  std::sort(squares.begin(), squares.end());
  squares.resize(squares.size() - squares.size() / 4);
  return squares.empty() ? 0
                         : std::accumulate(squares.begin(), squares.end(), 0.0) /
                               static_cast<double>(squares.size());
}

// Lag-1 autocorrelation of the noise, independent of steps of the level. In an AR(1) the variance
// of differences at lag 2 is 1 + phi times that at lag 1.
double autocorrelation(const std::vector<double>& values) {
  const double one = trimmed_square(values, 1), two = trimmed_square(values, 2);
  return one > 0 ? two / one - 1 : 0;
}

// The length of a block: most of an AR(1)'s memory lies inside one, so a permutation keeps it. A
// correlation that white noise shows by chance counts as none.
std::size_t block_length(double autocorrelation, std::size_t n) {
  const double points = static_cast<double>(n);
  if (autocorrelation < 1.5 / std::sqrt(points)) return 1;
  const double phi = std::min(autocorrelation, 0.95);
  const double length = std::cbrt(points) * std::pow(2 * phi / (1 - phi * phi), 2.0 / 3.0);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(length)), 2,
                                 std::max<std::size_t>(2, n / 4));
}

// Fewer blocks than this have too few orders to show a step at 1 %.
constexpr std::size_t kFewBlocks = 10;

// The p-value of the largest difference of neighbours, from its ratio to the second largest. In a
// sample with the tail x^-3, heavier than that of noise seen, that ratio exceeds r with probability
// r^-3. It holds for white noise, AR(1) and random walks: their differences have one distribution.
// 1 unless the difference is at `cut`.
double jump_p(const std::vector<double>& values, std::size_t cut) {
  double at_cut = 0, other = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double size = std::fabs(values[i] - values[i - 1]);
    (i == cut ? at_cut : other) = i == cut ? size : std::max(other, size);
  }
  return at_cut > other ? std::pow(other / at_cut, 3) : 1;
}

void permute_blocks(std::vector<std::uint32_t>& order, std::size_t block, Random& random) {
  const std::size_t n = order.size();
  // The first block is cut at random, so that no boundary is privileged.
  const std::size_t first = block > 1 ? random.below(block) : 0;
  std::vector<std::pair<std::size_t, std::size_t>> blocks;
  if (first > 0) blocks.emplace_back(0, first);
  for (std::size_t i = first; i < n; i += block) blocks.emplace_back(i, std::min(i + block, n));
  random.shuffle(blocks);
  std::size_t out = 0;
  for (const auto& [begin, end] : blocks)
    for (std::size_t i = begin; i < end; ++i) order[out++] = static_cast<std::uint32_t>(i);
}

class Segmentation {
 public:
  Segmentation(const std::vector<double>& values, const ChangePointOptions& options)
      : values_(values),
        options_(options),
        random_(options.seed),
        autocorrelation_(autocorrelation(values)) {}

  void split(std::size_t begin, std::size_t end) {
    const std::size_t least = static_cast<std::size_t>(options_.min_segment);
    if (end - begin < 2 * least) return;
    const std::vector<double> part = centered(begin, end);
    const Arc found = best_arc(part, least);
    if (found.statistic <= 0) return;
    double p = permutation_p(part, found.statistic, [&](const std::vector<double>& permuted) {
      return best_arc(permuted, least).statistic;
    });
    const bool step = found.begin == 0 || found.end == part.size();
    if (p > options_.alpha && step && blocks(part.size()) < kFewBlocks)
      p = jump_p(part, found.begin == 0 ? found.end : found.begin);
    if (p > options_.alpha) return;
    // One end of an inner arc may be chance: each must be significant alone.
    std::vector<std::size_t> cuts;
    for (const std::size_t cut : {found.begin, found.end}) {
      if (cut == 0 || cut == part.size()) continue;
      const std::size_t left = cut == found.begin ? 0 : found.begin;
      const std::size_t right = cut == found.begin ? found.end : part.size();
      if (step || stands(begin + left, begin + cut, begin + right)) cuts.push_back(begin + cut);
    }
    std::size_t from = begin;
    for (const std::size_t cut : cuts) {
      points_.push_back({cut, 1, 0, 0, begin, end, p});
      split(from, cut);
      from = cut;
    }
    if (!cuts.empty()) split(from, end);
  }

  // Magnitudes are of the levels next to each point, so they are known when all points are. The
  // weakest goes first: dropping it changes its neighbours' levels.
  std::vector<ChangePoint> finish() {
    std::sort(points_.begin(), points_.end(),
              [](const ChangePoint& a, const ChangePoint& b) { return a.index < b.index; });
    while (!points_.empty()) {
      measure();
      const auto weakest = std::min_element(
          points_.begin(), points_.end(), [](const ChangePoint& a, const ChangePoint& b) {
            return std::fabs(std::log(a.ratio)) < std::fabs(std::log(b.ratio));
          });
      if (std::fabs(weakest->ratio - 1) >= options_.min_magnitude) break;
      points_.erase(weakest);
    }
    return std::move(points_);
  }

 private:
  std::vector<double> centered(std::size_t begin, std::size_t end) const {
    std::vector<double> part(values_.begin() + static_cast<std::ptrdiff_t>(begin),
                             values_.begin() + static_cast<std::ptrdiff_t>(end));
    const double mean =
        std::accumulate(part.begin(), part.end(), 0.0) / static_cast<double>(part.size());
    for (double& value : part) value -= mean;
    return part;
  }

  std::size_t blocks(std::size_t points) const {
    return points / block_length(autocorrelation_, points);
  }

  // The share of block permutations whose statistic is as large. Sequential: a small statistic does
  // not need all of them.
  template <typename Statistic>
  double permutation_p(const std::vector<double>& part, double found, const Statistic& statistic) {
    const std::size_t block = block_length(autocorrelation_, part.size());
    std::vector<std::uint32_t> order(part.size());
    std::vector<double> permuted(part.size());
    int as_good = 0, done = 0;
    const int give_up = static_cast<int>(options_.alpha * (options_.permutations + 1) * 4) + 2;
    while (done < options_.permutations && as_good < give_up) {
      permute_blocks(order, block, random_);
      for (std::size_t i = 0; i < order.size(); ++i) permuted[i] = part[order[i]];
      as_good += statistic(permuted) >= found;
      ++done;
    }
    return static_cast<double>(as_good + 1) / (done + 1);
  }

  // True if the levels left and right of `cut` differ by more than chance.
  bool stands(std::size_t begin, std::size_t cut, std::size_t end) {
    const std::vector<double> part = centered(begin, end);
    const std::ptrdiff_t left = static_cast<std::ptrdiff_t>(cut - begin);
    const auto statistic = [&](const std::vector<double>& values) {
      return std::fabs(std::accumulate(values.begin(), values.begin() + left, 0.0));
    };
    return permutation_p(part, statistic(part), statistic) <= options_.alpha;
  }

  double level(std::size_t begin, std::size_t end) const {
    return std::exp(
        median_of(std::vector<double>(values_.begin() + static_cast<std::ptrdiff_t>(begin),
                                      values_.begin() + static_cast<std::ptrdiff_t>(end))));
  }
  void measure() {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      ChangePoint& point = points_[i];
      point.begin = i == 0 ? 0 : points_[i - 1].index;
      point.end = i + 1 == points_.size() ? values_.size() : points_[i + 1].index;
      point.before = level(point.begin, point.index);
      point.after = level(point.index, point.end);
      point.ratio = point.after / point.before;
    }
  }

  const std::vector<double>& values_;
  const ChangePointOptions& options_;
  Random random_;
  double autocorrelation_;
  std::vector<ChangePoint> points_;
};

}  // namespace

std::vector<ChangePoint> find_change_points(const std::vector<double>& values,
                                            const ChangePointOptions& options) {
  const std::size_t skipped =
      values.size() > options.max_points ? values.size() - options.max_points : 0;
  std::vector<double> logs;
  for (std::size_t i = skipped; i < values.size(); ++i) logs.push_back(std::log(values[i]));
  Segmentation segmentation(logs, options);
  segmentation.split(0, logs.size());
  std::vector<ChangePoint> points = segmentation.finish();
  for (ChangePoint& point : points) {
    point.index += skipped;
    point.begin += skipped;
    point.end += skipped;
  }
  return points;
}

std::vector<bool> benjamini_hochberg(const std::vector<double>& p_values, double rate) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::size_t stand = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (p_values[order[i]] <= rate * static_cast<double>(i + 1) / static_cast<double>(order.size()))
      stand = i + 1;
  std::vector<bool> stands(p_values.size(), false);
  for (std::size_t i = 0; i < stand; ++i) stands[order[i]] = true;
  return stands;
}

}  // namespace purlin::guard
