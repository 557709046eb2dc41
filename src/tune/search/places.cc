// SPDX-License-Identifier: Apache-2.0
#include "tune/search/places.h"

#include <algorithm>
#include <cmath>

namespace purlin::tune {

Places::Places(const Space& space) : space_(space) {
  for (std::size_t p = 0; p < space.parameters().size(); ++p) {
    const std::vector<Value>& values = space.parameters()[p].values;
    if (values.size() < 2) continue;
    Dimension dimension{p, false, std::vector<float>(values.size())};
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Result<double> number = to_double(values[i]);
      dimension.categorical |= !number.is_ok();
      order.emplace_back(number.value_or(static_cast<double>(i)), i);
    }
    if (!dimension.categorical) std::sort(order.begin(), order.end());
    for (std::size_t rank = 0; rank < order.size(); ++rank)
      dimension.places[order[rank].second] =
          static_cast<float>(rank) / static_cast<float>(order.size() - 1);
    dimensions_.push_back(std::move(dimension));
  }
}

std::vector<bool> Places::categorical() const {
  std::vector<bool> all;
  for (const Dimension& dimension : dimensions_) all.push_back(dimension.categorical);
  return all;
}

void Places::place(std::size_t index, std::span<float> out) const {
  Assignment assignment(space_.parameters().size());
  space_.assignment(index, assignment);
  for (std::size_t d = 0; d < dimensions_.size(); ++d)
    out[d] = dimensions_[d].places[assignment[dimensions_[d].parameter]];
}

std::vector<float> Places::of(std::size_t index) const {
  std::vector<float> place_of(dimensions());
  place(index, place_of);
  return place_of;
}

float Places::distance(std::span<const float> a, std::span<const float> b) const {
  float sum = 0;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    const float gap = std::abs(a[d] - b[d]);
    sum += dimensions_[d].categorical && gap > 0 ? 1.0F : gap;
  }
  return sum;
}

}  // namespace purlin::tune
