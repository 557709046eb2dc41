// SPDX-License-Identifier: Apache-2.0
// Surrogate: a Gaussian process over configs whose prior mean is what other runs say.
//
// The logarithm of a config's time is the sum of three terms:
// - An offset between this device and the others.
// - The other runs' relative log times, with uncertain weights.
// - A term for this device alone, which is alike for configs that differ little.
//
// The likelihood of the observations decides the weights of the runs and the smoothness of the last
// term; no constant is fitted to particular kernels. Each observation needs one pass over the
// candidates for each earlier observation. Thread-safety: belongs to one thread. Never fails.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace purlin::tune {

// What the surrogate is asked about, by position.
struct Candidates {
  std::size_t count = 0;
  std::size_t dimensions = 0;
  std::vector<float> places;      // candidate-major: in [0, 1] along each dimension
  std::vector<float> importance;  // how much each dimension counts in a distance; about 1
  std::vector<bool> categorical;  // of each dimension: any two values are equally unlike
  // Of each other run, the relative log time of every candidate: 0 for its best.
  std::vector<std::vector<float>> inherited;
  std::vector<float> weights;  // of the runs before anything is observed; they add up to 1

  // Along one dimension, at most 1.
  float gap(std::size_t a, std::size_t b, std::size_t dimension) const {
    const float apart =
        std::abs(places[a * dimensions + dimension] - places[b * dimensions + dimension]);
    return categorical[dimension] && apart > 0 ? 1.0F : apart;
  }
  // The sum over the dimensions, all of one importance.
  float distance(std::size_t a, std::size_t b) const {
    float sum = 0;
    for (std::size_t d = 0; d < dimensions; ++d) sum += gap(a, b, d);
    return sum;
  }
};

class Surrogate {
 public:
  // What configs are alike in. kProduct: those that differ in any dimension are unlike. kMixed:
  // also those that have one dimension in common, or two, are alike in that. The latter knows more
  // from few results where nothing is inherited.
  enum class Shape { kProduct, kMixed };
  explicit Surrogate(Candidates candidates, Shape shape = Shape::kProduct);

  std::size_t size() const { return candidates_.count; }
  // From now on taken as if it came out as predicted, until observe() says how it did.
  void expect(std::size_t candidate);
  // Expectations made between the two are forgotten. Nothing is observed meanwhile.
  void begin_trial();
  void end_trial();
  // REQUIRES: expected.
  void observe(std::size_t candidate, double log_time);
  // Chooses the scales, and how much each dimension counts, that make the observations likeliest,
  // and conditions on all of them again.
  void refit();

  // Leaves a run out from now on; those after it are one place further in front.
  void forget(std::size_t run);

  // The prediction; of log times on the scale of those observed.
  double mean(std::size_t candidate) const { return mean_[candidate]; }
  double variance(std::size_t candidate) const { return variance_[candidate]; }
  // The other runs' prediction for it, before anything was observed.
  double inherited(std::size_t candidate) const { return blend_[candidate]; }
  // How much likelier the observations are with the other runs than without, in nats; as of the
  // last refit.
  double evidence() const { return evidence_; }
  // How much by which a log time falls below `best` is to be expected of the candidate.
  double expected_improvement(std::size_t candidate, double best) const;
  // It is at most this, which is known at once.
  double most_improvement(std::size_t candidate, double best) const;

 private:
  struct Scales {
    float own = 0.3F;        // standard deviation of what is this device's own
    float roughness = 2;     // how fast likeness falls with distance
    float inherited = 0.3F;  // standard deviation of each run's weight
    float trust = 1;         // factor of the runs' weights
  };
  struct Row {
    std::size_t candidate = 0;
    std::optional<float> observed;
    float pivot = 1;
    std::vector<float> column;  // of the covariance's Cholesky factor, over all candidates
  };
  // Of each pair of observed rows, what covariances are made of.
  struct Pairs;

  float likeness(std::size_t a, std::size_t b, float roughness) const;
  void compare(Pairs& pairs, const std::vector<std::size_t>& at, float roughness) const;
  float shared(std::size_t a, std::size_t b) const;  // sum over runs of the product of their times
  float variance_before(std::size_t candidate) const;
  void covariances_with(std::size_t candidate, std::vector<float>& out) const;
  void condition(Row row);
  void condition_again();
  void weigh_dimensions(const std::vector<std::size_t>& at, Pairs& pairs, double likely);
  void learn_from(const Row& row);
  void update_means();
  static double log_likelihood(const Pairs& pairs, const Scales& scales);

  Candidates candidates_;
  Shape shape_;
  // Of each dimension, the places that occur; of each candidate, which it has.
  std::vector<std::vector<float>> levels_;
  std::vector<std::uint16_t> level_of_;  // candidate-major
  std::vector<float> blend_;             // the runs' times, weighted
  Scales scales_;
  float offset_ = 0;
  double evidence_ = 0;
  std::vector<Row> rows_;
  std::vector<float> mean_, variance_;
  std::size_t rows_before_trial_ = 0;
  std::vector<float> variance_before_trial_;
};

}  // namespace purlin::tune
