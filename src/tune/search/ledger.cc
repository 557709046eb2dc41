// SPDX-License-Identifier: Apache-2.0
#include "tune/search/ledger.h"

#include <numeric>
#include <vector>

namespace purlin::tune {
namespace {

constexpr int kTries = 8;  // random walks before any config will do

}  // namespace

std::optional<std::size_t> Ledger::draw() {
  while (const std::optional<std::size_t> index = shuffle_.next())
    if (take(*index)) return index;
  return std::nullopt;
}

std::optional<std::size_t> Ledger::draw_near(std::size_t index) {
  std::size_t at = index;
  for (int i = 0; i < kTries; ++i) {
    at = step(at);
    if (take(at)) return at;
  }
  return draw();
}

// A valid neighbour by trial first, for listing them all costs more.
std::size_t Ledger::step(std::size_t index) {
  Assignment near = values(index);
  const std::vector<Parameter>& parameters = space_.parameters();
  for (int i = 0; i < kTries; ++i) {
    const std::size_t parameter = random_.below(near.size());
    const std::size_t count = parameters[parameter].values.size();
    if (count < 2) continue;
    const std::uint16_t own = near[parameter];
    near[parameter] = static_cast<std::uint16_t>((own + 1 + random_.below(count - 1)) % count);
    if (const std::optional<std::size_t> found = space_.find(near)) return *found;
    near[parameter] = own;
  }
  const std::vector<std::size_t> all = space_.neighbours(index);
  return all.empty() ? index : all[random_.below(all.size())];
}

std::size_t Ledger::approach(std::size_t from, const Assignment& target, double probability) {
  Assignment at = values(from);
  std::vector<std::size_t> order(at.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random_.shuffle(order);
  std::size_t reached = from;
  for (const std::size_t parameter : order) {
    if (at[parameter] == target[parameter] || random_.uniform() >= probability) continue;
    const std::uint16_t own = at[parameter];
    at[parameter] = target[parameter];
    if (const std::optional<std::size_t> found = space_.find(at))
      reached = *found;
    else
      at[parameter] = own;
  }
  return reached;
}

Assignment Ledger::values(std::size_t index) const {
  Assignment values(space_.parameters().size());
  space_.assignment(index, values);
  return values;
}

}  // namespace purlin::tune
