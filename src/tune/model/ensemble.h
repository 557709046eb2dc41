// SPDX-License-Identifier: Apache-2.0
// Ensemble: what was observed of a space, and several models, boosted trees, fitted to different
// parts of it.
//
// Each member is a plausible account of the space: where they agree something is known, and taking
// the favourite of one of them explores in proportion to what is not. They predict log times, all
// alike above the median: what matters is to tell the fast from each other. Failed configs count as
// slower than that. Fitting takes at most about a thousand observations, so its time is bounded.
// What other runs said is used only while members that see it predict better, of observations that
// they were not fitted to. Thread-safety: belongs to one thread. Never fails.
#pragma once

#include "base/random.h"
#include "tune/model/counter_features.h"
#include "tune/model/encoding.h"
#include "tune/model/regressor.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace purlin::tune {

class Ensemble {
 public:
  static constexpr std::size_t kMembers = 4;
  using Prediction = std::array<float, kMembers>;

  explicit Ensemble(const Space& space, FitRegressor fit = fit_boosted_trees(),
                    std::vector<KnownFeature> known = {})
      : encoding_(space, std::move(known)), fit_(std::move(fit)) {}

  // With counters, what they were expected to be goes before the model of the time.
  void add(std::size_t index, std::optional<double> time_ms,
           const std::map<std::string, double>& counters = {});
  std::size_t observations() const { return log_times_.size(); }
  std::size_t worked() const { return worked_; }

  // REQUIRES: worked() > 0.
  void fit(Random& random);
  // The rows of configs, one after another, as predict() takes them.
  std::vector<std::uint8_t> encode(std::span<const std::size_t> indices) const;
  // CounterFeatures::floors of each row; empty without counters. REQUIRES: fitted.
  std::vector<float> floors(std::span<const std::uint8_t> rows) const {
    return counters_.floors(rows, encoding_.features());
  }
  // What each member expects of each row. REQUIRES: fitted.
  std::vector<Prediction> predict(std::span<const std::uint8_t> rows) const;

 private:
  std::vector<std::uint8_t> without_known(std::span<const std::uint8_t> rows,
                                          std::size_t row_width) const;
  static std::vector<std::uint32_t> fitted_rows(const std::vector<float>& targets, Random& random);

  Encoding encoding_;
  FitRegressor fit_;
  CounterFeatures counters_;
  std::vector<std::uint8_t> rows_;
  std::vector<std::optional<float>> log_times_;
  std::size_t worked_ = 0;
  std::vector<std::unique_ptr<Regressor>> members_;
};

}  // namespace purlin::tune
