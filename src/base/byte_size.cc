// SPDX-License-Identifier: Apache-2.0
#include "base/byte_size.h"

#include "base/text.h"

#include <algorithm>
#include <cmath>

namespace purlin {

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> value = parse_double(text.substr(0, unit_at));
  if (!value) return std::nullopt;
  std::string_view unit = text.substr(unit_at);
  double scale = 1;
  if (!unit.empty() && unit != "B") {
    const std::size_t power = kUnits.find(unit.front());
    unit.remove_prefix(1);
    if (power == std::string_view::npos || (unit != "" && unit != "B" && unit != "iB"))
      return std::nullopt;
    scale = std::pow(unit == "B" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  const double bytes = *value * scale;
  if (!(bytes < 9.2e18)) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace purlin
