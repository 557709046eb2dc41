// SPDX-License-Identifier: Apache-2.0
#include "tune/model/encoding.h"

#include <algorithm>
#include <cmath>

namespace purlin::tune {
namespace {

constexpr std::size_t kMaxRank = 63;

// The rank of each number among the different ones, scaled down where there are too many.
std::vector<std::uint8_t> ranks_of(const std::vector<double>& numbers) {
  std::vector<double> sorted = numbers;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const std::size_t last = std::max<std::size_t>(sorted.size() - 1, 1);
  std::vector<std::uint8_t> ranks;
  for (const double number : numbers) {
    const auto rank = static_cast<std::size_t>(
        std::lower_bound(sorted.begin(), sorted.end(), number) - sorted.begin());
    ranks.push_back(static_cast<std::uint8_t>(last <= kMaxRank ? rank : rank * kMaxRank / last));
  }
  return ranks;
}

// The values as numbers, or empty where one is text.
std::vector<double> numbers_of(const Parameter& parameter) {
  std::vector<double> numbers;
  for (const Value& value : parameter.values) {
    const Result<double> number = to_double(value);
    if (!number.is_ok()) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

std::uint8_t KnownFeature::of(std::size_t index) const {
  const auto found = std::lower_bound(bins.begin(), bins.end(), std::pair(index, std::uint8_t{0}));
  return found != bins.end() && found->first == index ? found->second : otherwise;
}

Encoding::Encoding(const Space& space, std::vector<KnownFeature> known)
    : space_(space), known_(std::move(known)) {
  struct Numeric {
    std::size_t parameter;
    std::vector<double> numbers;
  };
  std::vector<Numeric> factors;
  for (std::size_t i = 0; i < space.parameters().size(); ++i) {
    const Parameter& parameter = space.parameters()[i];
    if (parameter.values.size() < 2) continue;
    std::vector<double> numbers = numbers_of(parameter);
    const bool numeric = !numbers.empty();
    if (!numeric)
      for (std::size_t v = 0; v < parameter.values.size(); ++v)
        numbers.push_back(static_cast<double>(v));
    parameters_.push_back({i, ranks_of(numbers)});
    // Two values are a switch as a rule, and switches do not multiply.
    if (numeric && numbers.size() > 2 && numbers.size() <= 256 &&
        *std::min_element(numbers.begin(), numbers.end()) > 0)
      factors.push_back({i, std::move(numbers)});
  }
  for (std::size_t a = 0; a < factors.size(); ++a) {
    for (std::size_t b = a + 1; b < factors.size() && products_.size() < kMaxProducts; ++b) {
      std::vector<double> products;
      for (const double x : factors[a].numbers)
        for (const double y : factors[b].numbers) products.push_back(x * y);
      products_.push_back({factors[a].parameter, factors[b].parameter, factors[b].numbers.size(),
                           ranks_of(products)});
    }
  }
}

void Encoding::encode(std::size_t index, std::span<std::uint8_t> out) const {
  Assignment values(space_.parameters().size());
  space_.assignment(index, values);
  std::size_t at = 0;
  for (const Feature& feature : parameters_) out[at++] = feature.ranks[values[feature.parameter]];
  for (const Product& product : products_)
    out[at++] = product.ranks[values[product.first] * product.stride + values[product.second]];
  for (const KnownFeature& feature : known_) out[at++] = feature.of(index);
}

}  // namespace purlin::tune
