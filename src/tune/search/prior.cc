// SPDX-License-Identifier: Apache-2.0
#include "tune/search/prior.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace purlin::tune {
namespace {

// A run of fewer configs has no order that says anything of the others.
constexpr std::size_t kLeastOrdered = 20;
constexpr double kBinsPerNat = 3;  // of the odds to be among the faster ones
constexpr double kMiddle = 31.5, kLastBin = 63;

// Fine at both ends of the order: near the front are the configs to choose among, and near the end,
// where runs have the order turned round.
double place_at(double rank, double count) {
  const double share = (rank + 0.5) / count;
  return kMiddle + kBinsPerNat * std::log(share / (1 - share));
}

std::uint8_t bin_of(double place) {
  return static_cast<std::uint8_t>(std::clamp(std::round(place), 0.0, kLastBin));
}

// By index.
std::vector<std::pair<std::size_t, double>> places_in(const PriorRun& run) {
  const auto worked = static_cast<double>(run.times.size());
  const double count = worked + static_cast<double>(run.failed.size());
  std::vector<std::pair<std::size_t, double>> places;
  for (std::size_t i = 0; i < run.times.size(); ++i)
    places.emplace_back(run.times[i].first, place_at(static_cast<double>(i), count));
  for (const std::size_t index : run.failed) places.emplace_back(index, kLastBin);
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

std::vector<KnownFeature> features_of(const std::vector<PriorRun>& runs) {
  std::vector<KnownFeature> features;
  std::map<std::size_t, std::pair<double, std::size_t>> sums;
  for (const PriorRun& run : runs) {
    if (run.times.size() < kLeastOrdered) continue;
    KnownFeature& feature = features.emplace_back();
    feature.otherwise = bin_of(kMiddle);
    for (const auto& [index, place] : places_in(run)) {
      feature.bins.emplace_back(index, bin_of(place));
      auto& [sum, count] = sums[index];
      sum += place;
      ++count;
    }
  }
  if (features.size() < 2) return features;
  KnownFeature& mean = features.emplace_back();
  mean.otherwise = bin_of(kMiddle);
  for (const auto& [index, sum] : sums)
    mean.bins.emplace_back(index, bin_of(sum.first / static_cast<double>(sum.second)));
  return features;
}

}  // namespace purlin::tune
