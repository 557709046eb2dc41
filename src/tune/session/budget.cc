// SPDX-License-Identifier: Apache-2.0
#include "tune/session/budget.h"

#include "base/text.h"

#include <algorithm>

namespace purlin::tune {

Result<Budget> parse_budget(std::string_view text) {
  Budget budget;
  for (const std::string& part : split(text, ',')) {
    const std::string_view item = trim(part);
    if (const auto count = parse_int(item); count && *count > 0 && budget.evaluations == 0) {
      budget.evaluations = static_cast<std::size_t>(*count);
    } else if (const auto seconds = parse_duration_s(item);
               seconds && *seconds > 0 && budget.seconds == 0) {
      budget.seconds = *seconds;
    } else {
      return error(Code::kInvalid,
                   "--budget takes a number of evaluations (200), a time (60s, 5m), or both "
                   "(200,60s), not '{}'",
                   text);
    }
  }
  return budget;
}

std::string Budget::text() const {
  std::string text = evaluations > 0 ? std::to_string(evaluations) : "";
  if (seconds > 0) text += fmt::format("{}{:g}s", text.empty() ? "" : ",", seconds);
  return text;
}

bool Budget::exceeds(const Budget& other) const {
  return (other.evaluations > 0 && (evaluations == 0 || evaluations > other.evaluations)) ||
         (other.seconds > 0 && (seconds == 0 || seconds > other.seconds));
}

double Budget::reference_s() const {
  constexpr double kLeast = 10;  // of a host that is busy
  return seconds > 0 ? std::max(seconds, kLeast) : 0;
}

double Budget::spent(std::size_t evaluations_made, double seconds_passed) const {
  double share = 0;
  if (evaluations > 0)
    share = static_cast<double>(evaluations_made) / static_cast<double>(evaluations);
  if (seconds > 0) share = std::max(share, seconds_passed / seconds);
  return std::min(share, 1.0);
}

}  // namespace purlin::tune
