// SPDX-License-Identifier: Apache-2.0
#include "tune/search/screen.h"

#include <algorithm>
#include <cmath>

namespace purlin::tune {
namespace {

constexpr std::size_t kLeastScreened = 3, kMostScreened = 32;  // results
constexpr float kScreenLikeness = 12;  // how fast likeness falls with the mean distance
constexpr float kScreenDoubt = 0.05F;  // weight of the mean of all

}  // namespace

void Screen::add(std::size_t index, std::optional<double> time_ms) {
  if (among_ < 2 || seen_.size() >= kMostScreened) return;
  std::optional<float> log_time;
  if (time_ms) log_time = static_cast<float>(std::log(std::max(*time_ms, 1e-9)));
  seen_.push_back({places_.of(index), log_time});
}

// Relative to the mean of all; a failure is as slow as the slowest that worked.
float Screen::expected(std::size_t index) const {
  const std::vector<float> place = places_.of(index);
  float slowest = 0;
  bool any = false;
  for (const Seen& one : seen_)
    if (one.log_time) slowest = any ? std::max(slowest, *one.log_time) : *one.log_time, any = true;
  float mean = 0;
  for (const Seen& one : seen_) mean += one.log_time.value_or(slowest);
  mean /= static_cast<float>(seen_.size());
  const float scale = kScreenLikeness / static_cast<float>(std::max<std::size_t>(1, place.size()));
  float weights = kScreenDoubt, sum = 0;
  for (const Seen& one : seen_) {
    const float weight = std::exp(-scale * places_.distance(place, one.place));
    weights += weight;
    sum += weight * (one.log_time.value_or(slowest) - mean);
  }
  return sum / weights;
}

std::optional<std::size_t> Screen::draw(Ledger& ledger, Random& random) const {
  if (among_ < 2 || seen_.size() < kLeastScreened) return ledger.draw();
  std::optional<std::size_t> best;
  float least = 0;
  for (const std::size_t index : space_.sample(among_, random)) {
    if (ledger.knows(index)) continue;
    const float value = expected(index);
    if (best && value >= least) continue;
    best = index;
    least = value;
  }
  if (!best) return ledger.draw();
  ledger.take(*best);
  return best;
}

}  // namespace purlin::tune
