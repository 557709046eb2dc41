// SPDX-License-Identifier: Apache-2.0
#include "cache/entry/bucket_regret.h"

#include "base/random.h"
#include "base/text.h"
#include "cache/entry/shape_check.h"

#include <algorithm>
#include <cmath>

namespace purlin::cache {
namespace {

constexpr int kDraws = 400;
constexpr std::int64_t kGrain = 64;  // shapes of programs are seldom odd numbers

// Evenly on a logarithmic scale, rounded to a random power of two as far as the range allows.
std::int64_t draw(Random& random, std::int64_t low, std::int64_t high) {
  const double drawn = std::exp(
      random.uniform(std::log(static_cast<double>(low)), std::log(static_cast<double>(high) + 1)));
  const std::int64_t value = std::clamp(static_cast<std::int64_t>(drawn), low, high);
  std::int64_t grain = kGrain >> random.below(7);
  for (; grain > 1; grain /= 2)
    if (const std::int64_t round = (value + grain - 1) / grain * grain; round <= high) return round;
  return value;
}

// A rule that cuts the bucket of `extent` in four or more; "" where it cannot be cut.
std::string finer(const BucketRule& rule, std::int64_t extent) {
  const auto [low, high] = rule.bounds(extent);
  const std::int64_t width = high == 0 ? extent : high - low + 1;
  if (low == 0 || width < 4) return "";
  std::int64_t step = 1;
  while (step * 8 <= width) step *= 2;
  return fmt::format("multiple:{}", step);
}

}  // namespace

std::vector<ProblemShape> regret_shapes(const Entry& entry, std::size_t count, std::uint64_t seed) {
  struct Range {
    std::string name;
    std::int64_t low = 1, high = 1;
  };
  std::vector<Range> ranges;
  for (const auto& [name, rule] : entry.bucket_rules) {
    const std::int64_t* extent = entry.problem.find(name);
    if (extent == nullptr) return {};
    auto [low, high] = rule.bounds(*extent);
    if (low == 0) return {};
    if (high == 0) high = std::max(low, *extent) * 4;
    ranges.push_back({name, low, high});
  }
  std::vector<ProblemShape> shapes;
  const auto consider = [&](const ProblemShape& shape) {
    if (shapes.size() == count || shape == entry.problem || !check_shape(entry, shape).is_ok() ||
        std::find(shapes.begin(), shapes.end(), shape) != shapes.end())
      return;
    shapes.push_back(shape);
  };
  Random random(seed);
  const auto fill = [&](std::size_t up_to, bool near_end) {
    for (int i = 0; i < kDraws && shapes.size() < up_to; ++i) {
      ProblemShape shape;
      for (const Range& range : ranges)
        shape.set(range.name,
                  draw(random, range.low,
                       near_end ? std::min(range.high, range.low + range.high / 16) : range.high));
      consider(shape);
    }
  };
  // One at the small end, which is usually the farthest from what was measured.
  fill(std::min<std::size_t>(count, 1), true);
  fill(count, false);
  return shapes;
}

std::optional<std::pair<ProblemShape, double>> worst_regret(const Entry& entry) {
  const auto worst =
      std::max_element(entry.bucket_regret.begin(), entry.bucket_regret.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (worst == entry.bucket_regret.end()) return std::nullopt;
  return *worst;
}

std::string bucket_advice(const Entry& entry, double bound) {
  const auto worst = worst_regret(entry);
  if (!worst || worst->second <= bound) return "";
  // The dimension in which that shape is farthest from the measured one.
  std::string dimension;
  double farthest = 0;
  for (const auto& [name, extent] : worst->first.items()) {
    const std::int64_t* measured = entry.problem.find(name);
    if (measured == nullptr || *measured < 1 || extent < 1) continue;
    const double distance =
        std::abs(std::log2(static_cast<double>(extent) / static_cast<double>(*measured)));
    if (distance > farthest) {
      farthest = distance;
      dimension = name;
    }
  }
  std::string rule;
  for (const auto& [name, of] : entry.bucket_rules)
    if (name == dimension) rule = finer(of, *entry.problem.find(name));
  std::string text = fmt::format("at {} the bucket's config takes {:.2f} times that shape's best",
                                 worst->first.text(), worst->second);
  if (rule.empty()) return text;
  return text + fmt::format("; a finer rule would help: [bucket] {} = \"{}\", or tune that shape",
                            dimension, rule);
}

}  // namespace purlin::cache
