// SPDX-License-Identifier: Apache-2.0
// Regressor: what was fitted to rows of bytes and their targets; the seam at which one kind of
// model takes another's place. The product has one (boosted_trees.h); bench/model_compare.cc brings
// XGBoost. Thread-safety: belongs to one thread. Never fails.
#pragma once

#include "base/random.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace purlin::tune {

class Regressor {
 public:
  virtual ~Regressor() = default;
  // One value for each row. REQUIRES: rows.size() == out.size() * the width it was fitted to.
  virtual void predict(std::span<const std::uint8_t> rows, std::span<float> out) const = 0;
};

struct FitRequest {
  std::span<const std::uint8_t> rows;
  std::size_t width = 0;  // of a row
  std::span<const float> targets;
  std::span<const std::uint32_t> chosen;  // rows to use; not empty, each once
};
using FitRegressor = std::function<std::unique_ptr<Regressor>(const FitRequest&, Random&)>;

// Boosted trees with the settings of the product.
FitRegressor fit_boosted_trees();

}  // namespace purlin::tune
