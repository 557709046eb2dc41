// SPDX-License-Identifier: Apache-2.0
#include "tune/search/smooth.h"

#include <algorithm>
#include <cmath>

namespace purlin::tune {
namespace {

constexpr std::size_t kMostSmooth = 200;  // results that worked
constexpr std::size_t kFirstSmoothFit = 5, kLastSmoothFit = 100;
// Times above this quantile count as it, but not those within the range of the best (in nats).
constexpr double kClipped = 0.35, kLeastRange = 0.3;
constexpr double kLeastGain = 0.02;  // in nats: the noise of the process (surrogate.cc)
// A config that was named as likely is asked for if it promises this share of what the best does.
constexpr double kNearlyAsPromising = 0.6;
constexpr double kSmoothGrowth = 1.25;  // of the results, from one fit of the scales to the next
// How fast likeness falls with distance, and the weight of the belief that configs work.
constexpr float kFailLikeness = 3, kFailDoubt = 0.3F;

}  // namespace

// Of a space too large to predict whole, the candidates are a sample.
Smooth::Smooth(const Space& space, Ledger& ledger, Random& random)
    : ledger_(ledger),
      chosen_(transfer_candidates(space, {}, random)),
      surrogate_(chosen_.known, Surrogate::Shape::kMixed),
      expected_(surrogate_.size()),
      worked_(surrogate_.size()),
      failed_(surrogate_.size()) {}

// A log time above it counts as it.
double Smooth::limit() const {
  if (results_.size() < kFirstSmoothFit) return *best_ + kSlowest;
  std::vector<double> times;
  for (const Result& one : results_) times.push_back(one.log_time);
  const auto at =
      times.begin() + static_cast<std::ptrdiff_t>(kClipped * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), at, times.end());
  return std::clamp(*at, *best_ + kLeastRange, *best_ + kSlowest);
}

// A log time that is a gain.
double Smooth::sought() const { return *best_ - kLeastGain; }

std::optional<std::size_t> Smooth::candidate(std::size_t index) const {
  const auto found = std::lower_bound(chosen_.indices.begin(), chosen_.indices.end(), index);
  if (found == chosen_.indices.end() || *found != index) return std::nullopt;
  return static_cast<std::size_t>(found - chosen_.indices.begin());
}

void Smooth::add(std::size_t index, std::optional<double> time_ms) {
  const std::optional<std::size_t> known = candidate(index);
  if (!known || results_.size() >= kMostSmooth) return;
  const std::size_t at = *known;
  count_neighbours(at, time_ms.has_value());
  if (!time_ms) return;
  const double log_time = std::log(std::max(*time_ms, 1e-9));
  best_ = std::min(best_.value_or(log_time), log_time);
  results_.push_back({at, log_time});
  if (!expected_[at]) surrogate_.expect(at);
  expected_[at] = true;
  surrogate_.observe(at, std::min(log_time, limit()));
  const std::size_t count = results_.size();
  if (count >= std::max(next_refit_, kFirstSmoothFit) && count <= kLastSmoothFit) refit();
}

void Smooth::count_neighbours(std::size_t candidate, bool worked) {
  std::vector<float>& counts = worked ? worked_ : failed_;
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] += std::exp(-kFailLikeness * chosen_.known.distance(candidate, i));
}

double Smooth::works(std::size_t candidate) const {
  const double for_it = kFailDoubt + worked_[candidate];
  return for_it / (for_it + failed_[candidate]);
}

double Smooth::promise(std::size_t candidate) const {
  return works(candidate) * surrogate_.expected_improvement(candidate, sought());
}

void Smooth::refit() {
  next_refit_ = static_cast<std::size_t>(kSmoothGrowth * static_cast<double>(results_.size())) + 1;
  const double most = limit();
  for (const Result& one : results_)
    surrogate_.observe(one.candidate, std::min(one.log_time, most));
  surrogate_.refit();
}

std::optional<std::size_t> Smooth::ask() {
  if (!best_ || results_.size() >= kMostSmooth) return std::nullopt;
  std::optional<std::size_t> best = most_promising({});
  if (!best || std::find(named_.begin(), named_.end(), *best) != named_.end()) return take(best);
  double most = kNearlyAsPromising * promise(*best);
  for (const std::size_t named : named_)
    if (!ledger_.knows(chosen_.indices[named]) && promise(named) >= most)
      most = promise(named), best = named;
  return take(best);
}

std::optional<std::size_t> Smooth::most_promising(const std::vector<std::size_t>& others) const {
  std::optional<std::size_t> best;
  double most = 0;
  for (std::size_t i = 0; i < surrogate_.size(); ++i) {
    if (best && surrogate_.most_improvement(i, sought()) <= most) continue;
    if (ledger_.knows(chosen_.indices[i])) continue;
    if (std::find(others.begin(), others.end(), chosen_.indices[i]) != others.end()) continue;
    const double value = promise(i);
    if (!best || value > most) most = value, best = i;
  }
  return best;
}

std::vector<std::size_t> Smooth::likely(std::size_t count) {
  std::vector<std::size_t> found;
  if (!best_ || results_.size() >= kMostSmooth) return found;
  surrogate_.begin_trial();
  while (found.size() < count) {
    const std::optional<std::size_t> next = most_promising(found);
    if (!next) break;
    surrogate_.expect(*next);
    if (std::find(named_.begin(), named_.end(), *next) == named_.end()) named_.push_back(*next);
    found.push_back(chosen_.indices[*next]);
  }
  surrogate_.end_trial();
  return found;
}

std::optional<std::size_t> Smooth::favourite(const std::vector<std::size_t>& indices) const {
  if (!best_ || results_.size() >= kMostSmooth) return std::nullopt;
  std::optional<std::size_t> best;
  double most = 0;
  for (const std::size_t index : indices) {
    const std::optional<std::size_t> at = candidate(index);
    if (!at || ledger_.knows(index)) continue;
    const double value = promise(*at);
    if (!best || value > most) most = value, best = at;
  }
  if (!best) return std::nullopt;
  return chosen_.indices[*best];
}

std::optional<std::size_t> Smooth::ask_among(const std::vector<std::size_t>& indices) {
  const std::optional<std::size_t> index = favourite(indices);
  return index ? take(candidate(*index)) : std::nullopt;
}

std::optional<std::size_t> Smooth::take(std::optional<std::size_t> candidate) {
  if (!candidate) return std::nullopt;
  ledger_.take(chosen_.indices[*candidate]);
  surrogate_.expect(*candidate);
  expected_[*candidate] = true;
  return chosen_.indices[*candidate];
}

}  // namespace purlin::tune
