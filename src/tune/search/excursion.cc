// SPDX-License-Identifier: Apache-2.0
#include "tune/search/excursion.h"

#include <algorithm>
#include <numeric>

namespace purlin::tune {
namespace {

constexpr std::size_t kIdleExcursion = 8;  // configs without a gain that end an excursion
constexpr std::size_t kLeastModelled = 4;  // results that worked, for a model
constexpr std::size_t kPoolWanted = 50;    // configs of the pool with the value, or more are made
constexpr std::size_t kForcedSample = 500;
constexpr double kByMean = 0.5;  // of the proposals; the others follow one member

}  // namespace

void Excursions::add(std::size_t index, std::optional<double> time_ms) {
  results_.push_back({index, time_ms});
  if (forced_ && has(index, *forced_)) learn(results_.back());
}

bool Excursions::has(std::size_t index, const Forced& forced) const {
  Assignment assignment(space_.parameters().size());
  space_.assignment(index, assignment);
  return assignment[forced.first] == forced.second;
}

void Excursions::learn(const Result& result) {
  ensemble_->add(result.index, result.time_ms);
  if (!result.time_ms || (best_ms_ && *result.time_ms >= *best_ms_)) return;
  best_ms_ = result.time_ms;
  idle_ = 0;
  gained_ = true;
}

std::optional<Excursions::Forced> Excursions::choose(std::size_t best) {
  const Assignment at = ledger_.values(best);
  std::vector<std::pair<double, Forced>> weights;
  double total = 0;
  for (std::size_t p = 0; p < at.size(); ++p) {
    const std::size_t count = space_.parameters()[p].values.size();
    for (std::size_t v = 0; v < count; ++v) {
      const Forced forced{p, static_cast<std::uint16_t>(v)};
      if (at[p] == forced.second) continue;
      const auto visited = 1 + static_cast<double>(visits_[forced]);
      total += 1 / (static_cast<double>(count - 1) * visited * visited);
      weights.emplace_back(total, forced);
    }
  }
  if (weights.empty()) return std::nullopt;
  const double drawn = random_.uniform(0, total);
  for (const auto& [until, forced] : weights)
    if (drawn < until) return forced;
  return weights.back().second;
}

bool Excursions::begin(std::size_t best, const std::vector<std::size_t>& pool) {
  if (forced_ && !gained_) ++visits_[*forced_];
  forced_ = choose(best);
  if (!forced_) return false;
  pool_.clear();
  const auto keep = [&](std::size_t index) {
    if (has(index, *forced_)) pool_.push_back(index);
  };
  for (const std::size_t index : pool) keep(index);
  if (pool_.size() < kPoolWanted) {
    for (const std::size_t index : space_.sample(kForcedSample, random_)) keep(index);
    Assignment forced = ledger_.values(best);
    forced[forced_->first] = forced_->second;
    if (const std::optional<std::size_t> found = space_.find(forced)) {
      keep(*found);
      for (const std::size_t index : space_.neighbours(*found)) keep(index);
    }
  }
  ensemble_.emplace(space_, fit_);
  rows_ = ensemble_->encode(pool_);
  best_ms_.reset();
  for (const Result& result : results_)
    if (has(result.index, *forced_)) learn(result);
  idle_ = 0;
  gained_ = false;
  return true;
}

std::optional<std::size_t> Excursions::draw() {
  std::vector<std::size_t> open;
  for (const std::size_t index : pool_)
    if (!ledger_.knows(index)) open.push_back(index);
  if (open.empty()) return std::nullopt;
  const std::size_t index = open[random_.below(open.size())];
  ledger_.take(index);
  return index;
}

std::optional<std::size_t> Excursions::expected_best() {
  ensemble_->fit(random_);
  const std::vector<Ensemble::Prediction> expected = ensemble_->predict(rows_);
  const std::size_t member = random_.below(Ensemble::kMembers);
  const bool by_mean = random_.uniform() < kByMean;
  std::optional<std::size_t> found;
  float low = 0;
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    const float value = by_mean ? std::accumulate(expected[i].begin(), expected[i].end(), 0.0F)
                                : expected[i][member];
    if ((found && value >= low) || ledger_.knows(pool_[i])) continue;
    found = pool_[i];
    low = value;
  }
  if (found) ledger_.take(*found);
  return found;
}

std::optional<std::size_t> Excursions::ask(std::size_t best, const std::vector<std::size_t>& pool) {
  if (!forced_ || idle_ >= kIdleExcursion || has(best, *forced_))
    if (!begin(best, pool)) return std::nullopt;
  ++idle_;
  const std::optional<std::size_t> index =
      ensemble_->worked() < kLeastModelled ? draw() : expected_best();
  if (!index) {  // nothing is left there
    ++visits_[*forced_];
    forced_.reset();
  }
  return index;
}

}  // namespace purlin::tune
