// SPDX-License-Identifier: Apache-2.0
#include "tune/search/transfer/candidates.h"

#include "tune/search/places.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace purlin::tune {
namespace {

constexpr std::size_t kClimbable = 64;    // of each run's fastest, whose neighbours are considered
constexpr std::size_t kReferences = 500;  // of a run that is not complete, what others are like
constexpr float kLikeness = 4;            // how fast it falls with distance
// A run of few configs has only the winners: that they are alike says nothing of the others.
constexpr std::size_t kFair = 20;
constexpr double kUnknown = kSlowest / 2;
// Of a dimension that changes nothing elsewhere, for it may here; 1 is the mean.
constexpr double kMinImportance = 0.2;
// Times above the cap differ by at most so much: they keep their order, and only that.
constexpr double kAboveCap = 0.01, kFailedThere = kSlowest + kAboveCap;

// A cap without ties. The best of a run may be many times faster than most, and its order has to
// tell those apart, too.
double capped(double log_time) {
  if (log_time <= kSlowest) return log_time;
  return kSlowest + kAboveCap * (1 - kSlowest / log_time);
}

void choose(const Space& space, const std::vector<PriorRun>& priors, Random& random,
            std::size_t at_most, TransferCandidates& chosen) {
  std::vector<std::size_t>& indices = chosen.indices;
  if (space.size() <= at_most) {
    indices.resize(space.size());
    std::iota(indices.begin(), indices.end(), std::size_t{0});
    chosen.uniform = indices;
    return;
  }
  const std::size_t each = at_most / 2 / std::max<std::size_t>(priors.size(), 1);
  for (const PriorRun& run : priors)
    for (std::size_t i = 0; i < std::min(each, run.times.size()); ++i) {
      indices.push_back(run.times[i].first);
      if (i >= kClimbable / std::max<std::size_t>(priors.size(), 1)) continue;
      const std::vector<std::size_t> near = space.neighbours(run.times[i].first);
      indices.insert(indices.end(), near.begin(), near.end());
    }
  chosen.uniform = space.sample(at_most / 4, random);
  indices.insert(indices.end(), chosen.uniform.begin(), chosen.uniform.end());
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
}

void place(const Space& space, TransferCandidates& chosen) {
  const Places places(space);
  const std::size_t dimensions = places.dimensions();
  chosen.known.count = chosen.indices.size();
  chosen.known.dimensions = dimensions;
  chosen.known.categorical = places.categorical();
  chosen.known.places.resize(chosen.indices.size() * dimensions);
  for (std::size_t i = 0; i < chosen.indices.size(); ++i)
    places.place(chosen.indices[i],
                 std::span(chosen.known.places).subspan(i * dimensions, dimensions));
}

float likeness(const Candidates& known, std::size_t a, std::size_t b) {
  return std::exp(-kLikeness * known.distance(a, b));
}

// The run's relative log time of every candidate; what it did not measure is like what it did
// nearby, and as the run is on the whole where nothing is near.
std::vector<float> inherit(const TransferCandidates& chosen, const PriorRun& run) {
  const auto position = [&](std::size_t index) -> std::optional<std::size_t> {
    const auto found = std::lower_bound(chosen.indices.begin(), chosen.indices.end(), index);
    if (found == chosen.indices.end() || *found != index) return std::nullopt;
    return static_cast<std::size_t>(found - chosen.indices.begin());
  };
  std::vector<std::pair<std::size_t, float>> measured;
  double sum = 0;
  for (const auto& [index, time_ms] : run.times) {
    const double log_time = capped(std::log(time_ms / run.times.front().second));
    sum += log_time;
    if (const auto at = position(index)) measured.emplace_back(*at, static_cast<float>(log_time));
  }
  for (const std::size_t index : run.failed) {
    sum += kFailedThere;
    if (const auto at = position(index))
      measured.emplace_back(*at, static_cast<float>(kFailedThere));
  }
  const std::size_t known = run.times.size() + run.failed.size();
  const double mean = sum / static_cast<double>(known);
  const auto usual = static_cast<float>(known < kFair ? std::max(mean, kUnknown) : mean);

  std::vector<float> times(chosen.indices.size(), usual);
  if (measured.size() < chosen.indices.size()) {
    // Evenly over the measured ones, which are fastest first.
    std::vector<std::pair<std::size_t, float>> references;
    const std::size_t step = measured.size() / kReferences + 1;
    for (std::size_t i = 0; i < measured.size(); i += step) references.push_back(measured[i]);
    for (std::size_t i = 0; i < times.size(); ++i) {
      float weights = 0.05F, weighted = weights * usual;
      for (const auto& [at, time] : references) {
        const float weight = likeness(chosen.known, i, at);
        weights += weight;
        weighted += weight * time;
      }
      times[i] = weighted / weights;
    }
  }
  for (const auto& [at, time] : measured) times[at] = time;
  return times;
}

// How much each dimension counts in the distance of two configs: as much as the runs' times change
// from one value to the next, with all else alike.
void weigh_dimensions(Candidates& known) {
  const std::size_t dimensions = known.dimensions;
  known.importance.assign(dimensions, 1);
  if (known.inherited.empty() || dimensions == 0) return;
  std::vector<std::size_t> order(known.count);
  std::vector<double> changes(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) {
    // Configs that differ along this dimension alone stand side by side.
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const float* x = known.places.data() + a * dimensions;
      const float* y = known.places.data() + b * dimensions;
      for (std::size_t k = 0; k < dimensions; ++k)
        if (k != d && x[k] != y[k]) return x[k] < y[k];
      return x[d] < y[d];
    });
    double sum = 0, gaps = 0;
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      const float* x = known.places.data() + order[i] * dimensions;
      const float* y = known.places.data() + order[i + 1] * dimensions;
      bool alone = true;
      for (std::size_t k = 0; k < dimensions && alone; ++k) alone = k == d || x[k] == y[k];
      if (!alone) continue;
      gaps += known.categorical[d] ? 1 : y[d] - x[d];
      for (std::size_t run = 0; run < known.inherited.size(); ++run) {
        const std::vector<float>& times = known.inherited[run];
        sum += known.weights[run] * std::abs(times[order[i]] - times[order[i + 1]]);
      }
    }
    changes[d] = gaps > 0 ? sum / gaps : 0;
  }
  const double mean =
      std::accumulate(changes.begin(), changes.end(), 0.0) / static_cast<double>(dimensions);
  if (!(mean > 0)) return;
  for (std::size_t d = 0; d < dimensions; ++d)
    known.importance[d] =
        static_cast<float>((changes[d] / mean + kMinImportance) / (1 + kMinImportance));
}

// Before anything is observed here.
float weight_of(const PriorRun& run) {
  return (run.same_device ? 2.0F : 1.0F) * (run.same_vendor ? 2.0F : 1.0F) *
         (run.same_shape ? 2.0F : 1.0F);
}

}  // namespace

TransferCandidates transfer_candidates(const Space& space, const std::vector<PriorRun>& priors,
                                       Random& random, std::size_t at_most) {
  TransferCandidates chosen;
  choose(space, priors, random, at_most, chosen);
  place(space, chosen);
  float total = 0;
  for (const PriorRun& run : priors) {
    if (run.times.empty()) continue;
    chosen.known.inherited.push_back(inherit(chosen, run));
    chosen.known.weights.push_back(weight_of(run));
    total += chosen.known.weights.back();
  }
  for (float& weight : chosen.known.weights) weight /= total;
  weigh_dimensions(chosen.known);
  return chosen;
}

}  // namespace purlin::tune
