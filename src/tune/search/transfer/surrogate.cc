// SPDX-License-Identifier: Apache-2.0
#include "tune/search/transfer/surrogate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

namespace purlin::tune {
namespace {

constexpr float kNoise = 0.02F;               // standard deviation of a measurement, relative
constexpr float kOffset = 0.5F;               // of the offset between this device and the others
constexpr std::size_t kMinSurrogateRuns = 3;  // observations that say anything about scales
constexpr double kHopeless = -6;              // standard deviations
constexpr float kImportanceStep = 4, kMostImportance = 17;
constexpr double kClearly = 1;  // nats

// Independent of order, so that no scale wins a tie by luck.
constexpr float kOwn[] = {0.05F, 0.1F, 0.2F, 0.4F, 0.8F};
constexpr float kRoughness[] = {0.5F, 1, 2, 4, 8};
constexpr float kInherited[] = {0.1F, 0.4F};
constexpr float kTrust[] = {1, 0.5F};

// Shares of what configs have in common in one dimension, and in two, in the mixed shape.
constexpr float kOneAlike = 0.2F, kTwoAlike = 0.4F;

}  // namespace

struct Surrogate::Pairs {
  std::size_t count = 0;
  std::vector<float> likeness, shared;  // row-major, lower triangle filled
  std::vector<float> observed, blend;   // the offset left out of the former
};

Surrogate::Surrogate(Candidates candidates, Shape shape)
    : candidates_(std::move(candidates)), shape_(shape) {
  const std::size_t count = size();
  blend_.assign(count, 0);
  for (std::size_t run = 0; run < candidates_.inherited.size(); ++run) {
    std::vector<float>& times = candidates_.inherited[run];
    for (std::size_t i = 0; i < count; ++i) blend_[i] += candidates_.weights[run] * times[i];
    // A run's weight turns its times around their mean, so that the offset stays what it is.
    const float mean =
        std::accumulate(times.begin(), times.end(), 0.0F) / static_cast<float>(count);
    for (float& time : times) time -= mean;
  }
  levels_.resize(candidates_.dimensions);
  for (std::size_t d = 0; d < candidates_.dimensions; ++d) {
    std::vector<float>& levels = levels_[d];
    for (std::size_t i = 0; i < count; ++i) {
      const float place = candidates_.places[i * candidates_.dimensions + d];
      const auto at = std::lower_bound(levels.begin(), levels.end(), place);
      if (at == levels.end() || *at != place) levels.insert(at, place);
    }
  }
  level_of_.resize(count * candidates_.dimensions);
  for (std::size_t at = 0; at < level_of_.size(); ++at) {
    const std::vector<float>& levels = levels_[at % candidates_.dimensions];
    level_of_[at] = static_cast<std::uint16_t>(
        std::lower_bound(levels.begin(), levels.end(), candidates_.places[at]) - levels.begin());
  }
  mean_ = blend_;
  variance_.resize(count);
  for (std::size_t i = 0; i < count; ++i) variance_[i] = variance_before(i);
}

float Surrogate::likeness(std::size_t a, std::size_t b, float roughness) const {
  const std::size_t dimensions = candidates_.dimensions;
  float distance = 0, one = 0, squares = 0;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const float gap = candidates_.importance[d] * candidates_.gap(a, b, d);
    distance += gap;
    if (shape_ == Shape::kProduct) continue;
    const float along = std::exp(-roughness * gap);
    one += along;
    squares += along * along;
  }
  const float all = std::exp(-roughness * distance);
  if (shape_ == Shape::kProduct || dimensions < 2) return all;
  const auto count = static_cast<float>(dimensions);
  const float two = (one * one - squares) / (count * (count - 1));
  return (1 - kOneAlike - kTwoAlike) * all + kOneAlike * one / count + kTwoAlike * two;
}

float Surrogate::shared(std::size_t a, std::size_t b) const {
  float sum = 0;
  for (const std::vector<float>& times : candidates_.inherited) sum += times[a] * times[b];
  return sum;
}

float Surrogate::variance_before(std::size_t candidate) const {
  return kOffset * kOffset + scales_.inherited * scales_.inherited * shared(candidate, candidate) +
         scales_.own * scales_.own;
}

// Likeness along a dimension depends on two places of it alone, and there are few.
void Surrogate::covariances_with(std::size_t candidate, std::vector<float>& out) const {
  const std::size_t dimensions = candidates_.dimensions;
  std::vector<std::vector<float>> along(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) {
    const float own = candidates_.places[candidate * dimensions + d];
    for (const float place : levels_[d]) {
      const float apart = std::abs(own - place);
      const float gap = candidates_.categorical[d] && apart > 0 ? 1.0F : apart;
      along[d].push_back(std::exp(-scales_.roughness * candidates_.importance[d] * gap));
    }
  }
  const bool mixed = shape_ == Shape::kMixed && dimensions > 1;
  const auto count = static_cast<float>(dimensions);
  const float by_one = kOneAlike / count, by_two = kTwoAlike / (count * (count - 1));
  const std::uint16_t* level = level_of_.data();
  out.resize(size());
  for (std::size_t i = 0; i < size(); ++i, level += dimensions) {
    float all = 1, one = 0, squares = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
      const float value = along[d][level[d]];
      all *= value;
      one += value;
      squares += value * value;
    }
    if (mixed)
      all = (1 - kOneAlike - kTwoAlike) * all + by_one * one + by_two * (one * one - squares);
    out[i] = kOffset * kOffset + scales_.own * scales_.own * all;
  }
  if (candidates_.inherited.empty()) return;
  const float weight = scales_.inherited * scales_.inherited;
  for (const std::vector<float>& times : candidates_.inherited)
    for (std::size_t i = 0; i < size(); ++i) out[i] += weight * times[i] * times[candidate];
}

void Surrogate::condition(Row row) {
  const std::size_t at = row.candidate;
  covariances_with(at, row.column);
  for (const Row& before : rows_) {
    const float factor = before.column[at];
    for (std::size_t i = 0; i < size(); ++i) row.column[i] -= factor * before.column[i];
  }
  row.pivot = std::sqrt(std::max(row.column[at], 0.0F) + kNoise * kNoise);
  for (float& value : row.column) value /= row.pivot;
  for (std::size_t i = 0; i < size(); ++i)
    variance_[i] = std::max(0.0F, variance_[i] - row.column[i] * row.column[i]);
  rows_.push_back(std::move(row));
}

void Surrogate::expect(std::size_t candidate) { condition({candidate, std::nullopt, 1, {}}); }

void Surrogate::begin_trial() {
  rows_before_trial_ = rows_.size();
  variance_before_trial_ = variance_;
}

void Surrogate::end_trial() {
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(rows_before_trial_), rows_.end());
  variance_.swap(variance_before_trial_);
}

void Surrogate::observe(std::size_t candidate, double log_time) {
  const auto time = static_cast<float>(log_time);
  const bool first = std::none_of(rows_.begin(), rows_.end(),
                                  [](const Row& row) { return row.observed.has_value(); });
  if (first) offset_ = time - scales_.trust * blend_[candidate];
  const bool newest = !first && rows_.back().candidate == candidate && !rows_.back().observed;
  for (Row& row : rows_)
    if (row.candidate == candidate) row.observed = time;
  if (newest) {
    learn_from(rows_.back());
  } else {
    update_means();  // rows after it were conditioned on what it was expected to be
  }
}

void Surrogate::learn_from(const Row& row) {
  if (!row.observed) return;  // as predicted: no surprise
  const float surprise = (*row.observed - mean_[row.candidate]) / row.pivot;
  for (std::size_t i = 0; i < size(); ++i) mean_[i] += surprise * row.column[i];
}

void Surrogate::update_means() {
  for (std::size_t i = 0; i < size(); ++i) mean_[i] = offset_ + scales_.trust * blend_[i];
  for (const Row& row : rows_) learn_from(row);
}

double Surrogate::log_likelihood(const Pairs& pairs, const Scales& scales) {
  const std::size_t n = pairs.count;
  std::vector<double> factor(n * n), residual(n);
  double result = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = &factor[i * n];
    residual[i] = pairs.observed[i] - scales.trust * pairs.blend[i];
    for (std::size_t j = 0; j <= i; ++j) {
      const double* const other = &factor[j * n];
      double sum = kOffset * kOffset +
                   scales.inherited * scales.inherited * pairs.shared[i * n + j] +
                   scales.own * scales.own * pairs.likeness[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      row[j] = i == j ? std::sqrt(std::max(sum, 0.0) + kNoise * kNoise) : sum / other[j];
    }
    for (std::size_t k = 0; k < i; ++k) residual[i] -= row[k] * residual[k];
    residual[i] /= row[i];
    result -= 0.5 * residual[i] * residual[i] + std::log(row[i]);
  }
  return result;
}

void Surrogate::refit() {
  Pairs pairs;
  std::vector<std::size_t> at;
  for (const Row& row : rows_) {
    if (!row.observed) continue;
    at.push_back(row.candidate);
    pairs.observed.push_back(*row.observed - offset_);
    pairs.blend.push_back(blend_[row.candidate]);
  }
  const std::size_t n = pairs.count = at.size();
  if (n < kMinSurrogateRuns) return;
  pairs.likeness.resize(n * n);
  pairs.shared.resize(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) pairs.shared[i * n + j] = shared(at[i], at[j]);

  double with = -std::numeric_limits<double>::infinity(), without = with;
  Scales alone = scales_;
  for (const float roughness : kRoughness) {
    compare(pairs, at, roughness);
    for (const float own : kOwn) {
      const Scales none{own, roughness, 0, 0};
      if (const double value = log_likelihood(pairs, none); value > without)
        without = value, alone = none;
      if (candidates_.inherited.empty()) continue;
      for (const float inherited : kInherited)
        for (const float trust : kTrust) {
          const Scales scales{own, roughness, inherited, trust};
          if (const double value = log_likelihood(pairs, scales); value > with)
            with = value, scales_ = scales;
        }
    }
  }
  if (candidates_.inherited.empty()) {
    scales_ = alone;
    with = without;
  } else {
    evidence_ = with - without;
  }
  weigh_dimensions(at, pairs, with);
  condition_again();
}

void Surrogate::compare(Pairs& pairs, const std::vector<std::size_t>& at, float roughness) const {
  const std::size_t n = pairs.count;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j)
      pairs.likeness[i * n + j] = likeness(at[i], at[j], roughness);
}

// Where the other runs' times change, and where this device's own part does, may differ. One
// dimension after the other counts more or less if that makes the observations clearly likelier.
void Surrogate::weigh_dimensions(const std::vector<std::size_t>& at, Pairs& pairs, double likely) {
  for (std::size_t d = 0; d < candidates_.dimensions; ++d)
    for (const float factor : {1 / kImportanceStep, kImportanceStep}) {
      float& importance = candidates_.importance[d];
      const float before = importance, changed = before * factor;
      if (changed > kMostImportance || changed < 1 / kMostImportance) continue;
      importance = changed;
      compare(pairs, at, scales_.roughness);
      const double value = log_likelihood(pairs, scales_);
      if (value > likely + kClearly) {
        likely = value;
        break;
      }
      importance = before;
    }
}

void Surrogate::condition_again() {
  for (std::size_t i = 0; i < size(); ++i) variance_[i] = variance_before(i);
  for (Row& row : std::exchange(rows_, {})) condition({row.candidate, row.observed, 1, {}});
  update_means();
}

void Surrogate::forget(std::size_t run) {
  candidates_.inherited.erase(candidates_.inherited.begin() + static_cast<std::ptrdiff_t>(run));
  candidates_.weights.erase(candidates_.weights.begin() + static_cast<std::ptrdiff_t>(run));
  const float total = std::accumulate(candidates_.weights.begin(), candidates_.weights.end(), 0.0F);
  blend_.assign(size(), 0);
  for (std::size_t r = 0; r < candidates_.inherited.size(); ++r) {
    candidates_.weights[r] /= total;
    for (std::size_t i = 0; i < size(); ++i)
      blend_[i] += candidates_.weights[r] * candidates_.inherited[r][i];
  }
  // The offset was to what all the runs said.
  double sum = 0;
  std::size_t count = 0;
  for (const Row& row : rows_)
    if (row.observed) sum += *row.observed - scales_.trust * blend_[row.candidate], ++count;
  if (count > 0) offset_ = static_cast<float>(sum / static_cast<double>(count));
  condition_again();
  refit();
}

double Surrogate::most_improvement(std::size_t candidate, double best) const {
  constexpr double kDensityAtMean = 0.4;  // of a normal distribution, rounded up
  return std::max<double>(best - mean_[candidate], 0) +
         kDensityAtMean * std::sqrt(variance_[candidate]);
}

double Surrogate::expected_improvement(std::size_t candidate, double best) const {
  const double deviation = std::sqrt(variance_[candidate]);
  const double gain = best - mean_[candidate];
  if (deviation <= 0) return std::max(gain, 0.0);
  const double score = gain / deviation;
  if (score < kHopeless) return 0;
  const double below = 0.5 * std::erfc(-score / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * score * score) / std::sqrt(2 * std::numbers::pi);
  return gain * below + deviation * density;
}

}  // namespace purlin::tune
