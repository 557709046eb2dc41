// SPDX-License-Identifier: Apache-2.0
#include "tune/space/space.h"

#include <algorithm>

namespace purlin::tune {

void Space::assignment(std::size_t index, std::span<std::uint16_t> out) const {
  for (const Component& component : components_) {
    std::size_t local = 0;
    if (component.diagram.size() > 1) local = index / component.stride, index %= component.stride;
    component.diagram.assignment(local, out);
  }
}

bool Space::valid(std::size_t index) const {
  if (is_exact()) return true;
  Assignment values(parameters_.size());
  assignment(index, values);
  return !rejecting_filter(values);
}

std::optional<std::size_t> Space::rejecting_filter(
    std::span<const std::uint16_t> assignment) const {
  const auto lookup = [&](std::string_view name) -> const Value* {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].name == name) return &parameters_[i].values[assignment[i]];
    return constants_.find(name);
  };
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    const Result<bool> holds = filters_[i].expression.evaluate_bool(lookup);
    if (!holds.is_ok() || !*holds) return i;
  }
  return std::nullopt;
}

Config Space::config(std::size_t index) const {
  Assignment values(parameters_.size());
  assignment(index, values);
  Config config;
  for (std::size_t i = 0; i < values.size(); ++i)
    config.set(parameters_[i].name, parameters_[i].values[values[i]]);
  return config;
}

std::optional<std::size_t> Space::find(std::span<const std::uint16_t> assignment) const {
  std::size_t index = 0;
  for (const Component& component : components_) {
    const std::optional<std::size_t> local = component.diagram.find(assignment);
    if (!local) return std::nullopt;
    index += *local * component.stride;
  }
  if (rejecting_filter(assignment)) return std::nullopt;
  return index;
}

std::optional<std::size_t> Space::find(const Config& config) const {
  if (config.items().size() != parameters_.size()) return std::nullopt;
  Assignment values(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Value* value = config.find(parameters_[i].name);
    if (value == nullptr) return std::nullopt;
    const std::vector<Value>& known = parameters_[i].values;
    const auto found = std::find(known.begin(), known.end(), *value);
    if (found == known.end()) return std::nullopt;
    values[i] = static_cast<std::uint16_t>(found - known.begin());
  }
  return find(values);
}

std::vector<std::size_t> Space::neighbours(std::size_t index) const {
  return around(index, Reach::kAll);
}

std::vector<std::size_t> Space::adjacent(std::size_t index) const {
  return around(index, Reach::kNearest);
}

std::vector<std::size_t> Space::around(std::size_t index, Reach reach) const {
  struct Found {
    std::size_t parameter;
    std::uint16_t value;
    std::size_t index;
  };
  Assignment own(parameters_.size());
  assignment(index, own);
  std::vector<Found> found;
  for (const Component& component : components_) {
    const std::size_t local = index / component.stride % component.diagram.size();
    const std::size_t base = index - local * component.stride;
    const auto visit = [&](std::size_t parameter, std::uint16_t value, std::size_t other) {
      found.push_back({parameter, value, base + other * component.stride});
    };
    component.diagram.visit_neighbours(own, visit);
  }
  // A component's parameters come in its diagram's order.
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.parameter < b.parameter; });
  if (!is_exact()) std::erase_if(found, [&](const Found& other) { return !valid(other.index); });
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Found& other = found[i];
    const auto is_nearer = [&](std::size_t rival) {
      return rival < found.size() && found[rival].parameter == other.parameter &&
             (found[rival].value < own[other.parameter]) == (other.value < own[other.parameter]);
    };
    const bool below = other.value < own[other.parameter];
    if (reach == Reach::kNearest && is_nearer(below ? i + 1 : i - 1)) continue;
    out.push_back(other.index);
  }
  return out;
}

std::vector<std::size_t> Space::sample(std::size_t count, Random& random) const {
  Shuffle shuffle(*this, random.next());
  std::vector<std::size_t> drawn;
  while (drawn.size() < count) {
    const std::optional<std::size_t> index = shuffle.next();
    if (!index) break;
    drawn.push_back(*index);
  }
  return drawn;
}

std::optional<std::size_t> Shuffle::next() {
  std::optional<std::size_t> index = draw();
  while (space_ != nullptr && index && !space_->valid(*index)) index = draw();
  return index;
}

std::optional<std::size_t> Shuffle::draw() {
  if (remaining_ == 0) return std::nullopt;
  const std::size_t pick = random_.below(remaining_);
  const std::size_t last = --remaining_;
  const auto at = [&](std::size_t place) {
    const auto found = moved_.find(place);
    return found == moved_.end() ? place : found->second;
  };
  const std::size_t drawn = at(pick);
  if (pick != last) moved_[pick] = at(last);
  moved_.erase(last);
  return drawn;
}

}  // namespace purlin::tune
