// SPDX-License-Identifier: Apache-2.0
#include "tune/space/space.h"

#include <algorithm>

namespace purlin::tune {

std::optional<std::size_t> Space::Component::find(std::uint64_t code) const {
  if (complete) return code;
  const auto found = std::lower_bound(codes.begin(), codes.end(), code);
  if (found == codes.end() || *found != code) return std::nullopt;
  return static_cast<std::size_t>(found - codes.begin());
}

void Space::assignment(std::size_t index, std::span<std::uint16_t> out) const {
  for (const Component& component : components_) {
    std::uint64_t code = component.code(index / component.stride % component.size);
    for (std::size_t i = 0; i < component.parameters.size(); ++i) {
      out[component.parameters[i]] = static_cast<std::uint16_t>(code / component.strides[i]);
      code %= component.strides[i];
    }
  }
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
    std::uint64_t code = 0;
    for (std::size_t i = 0; i < component.parameters.size(); ++i)
      code += assignment[component.parameters[i]] * component.strides[i];
    const std::optional<std::size_t> local = component.find(code);
    if (!local) return std::nullopt;
    index += *local * component.stride;
  }
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
  std::vector<std::pair<std::size_t, std::vector<std::size_t>>> by_parameter;
  for (const Component& component : components_) {
    const std::size_t local = index / component.stride % component.size;
    const std::uint64_t code = component.code(local);
    const std::size_t base = index - local * component.stride;
    for (std::size_t i = 0; i < component.parameters.size(); ++i) {
      const std::size_t parameter = component.parameters[i];
      const std::uint64_t stride = component.strides[i];
      const std::uint64_t count = parameters_[parameter].values.size();
      const std::uint64_t own = code / stride % count;
      std::vector<std::size_t> found;
      for (std::uint64_t value = 0; value < count; ++value) {
        if (value == own) continue;
        const auto other = component.find(code - own * stride + value * stride);
        if (!other) continue;
        // Before the own value, the one found last is the nearest.
        if (reach == Reach::kNearest && value < own) found.clear();
        found.push_back(base + *other * component.stride);
        if (reach == Reach::kNearest && value > own) break;
      }
      by_parameter.emplace_back(parameter, std::move(found));
    }
  }
  std::sort(by_parameter.begin(), by_parameter.end());
  std::vector<std::size_t> all;
  for (const auto& [parameter, found] : by_parameter)
    all.insert(all.end(), found.begin(), found.end());
  return all;
}

std::vector<std::size_t> Space::sample(std::size_t count, Random& random) const {
  Shuffle shuffle(size_, random.next());
  std::vector<std::size_t> drawn;
  while (drawn.size() < count) {
    const std::optional<std::size_t> index = shuffle.next();
    if (!index) break;
    drawn.push_back(*index);
  }
  return drawn;
}

std::optional<std::size_t> Shuffle::next() {
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
