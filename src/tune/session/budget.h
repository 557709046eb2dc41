// SPDX-License-Identifier: Apache-2.0
// Budget: how much a session may spend: evaluations ("200") or time ("60s").
#pragma once

#include "base/status.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace purlin::tune {

struct Budget {
  std::size_t evaluations = 0;  // 0 = not limited
  double seconds = 0;           // 0 = not limited
  std::string text() const;     // as parse_budget takes it
  // Whether it allows what the other does not.
  bool exceeds(const Budget& other) const;
  // How long the reference may run: the seconds, at least ten. 0 = not limited by the budget.
  double reference_s() const;
  // Share spent, in [0, 1].
  double spent(std::size_t evaluations_made, double seconds_passed) const;
};

// "200", "60s", "5m", or both: "200,60s". kInvalid with what is accepted.
Result<Budget> parse_budget(std::string_view text);

}  // namespace purlin::tune
