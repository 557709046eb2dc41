// SPDX-License-Identifier: Apache-2.0
#include "tune/search/exchange.h"

#include <variant>

namespace purlin::tune {
namespace {

// Two values are a switch, and two switches have nothing to trade.
constexpr std::size_t kLeastTraded = 3;

bool is_traded(const Parameter& a, const Parameter& b) {
  return a.values.size() >= kLeastTraded && a.values == b.values &&
         !std::holds_alternative<std::string>(a.values.front());
}

}  // namespace

Exchange::Exchange(const Space& space) : space_(space) {
  const std::vector<Parameter>& parameters = space.parameters();
  for (std::size_t a = 0; a < parameters.size(); ++a)
    for (std::size_t b = a + 1; b < parameters.size(); ++b)
      if (is_traded(parameters[a], parameters[b])) pairs_.emplace_back(a, b);
}

std::vector<std::size_t> Exchange::of(std::size_t index) const {
  std::vector<std::size_t> found;
  Assignment values(space_.parameters().size());
  space_.assignment(index, values);
  const auto add = [&](std::size_t a, std::uint16_t at_a, std::size_t b, std::uint16_t at_b) {
    Assignment other = values;
    other[a] = at_a;
    other[b] = at_b;
    if (const std::optional<std::size_t> valid = space_.find(other)) found.push_back(*valid);
  };
  for (const auto& [a, b] : pairs_) {
    if (values[a] != values[b]) add(a, values[b], b, values[a]);
    for (const auto& [up, down] : {std::pair(a, b), std::pair(b, a)}) {
      const bool has_room =
          values[up] + 1U < space_.parameters()[up].values.size() && values[down] > 0;
      // Between neighbours in value, a step is the trade from above.
      if (!has_room || values[up] + 1U == values[down]) continue;
      add(up, static_cast<std::uint16_t>(values[up] + 1), down,
          static_cast<std::uint16_t>(values[down] - 1));
    }
  }
  return found;
}

}  // namespace purlin::tune
