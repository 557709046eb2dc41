// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/progress_line.h"

#include "base/text.h"

#include <algorithm>

namespace purlin::cli {
namespace {

std::string time_left(const tune::SessionState& state, const tune::Budget& budget,
                      std::size_t total) {
  if (budget.seconds > 0)
    return fmt::format("  {:.0f} s left", std::max(0.0, budget.seconds - state.elapsed_s));
  const double share =
      std::max(state.spent, static_cast<double>(state.done) /
                                static_cast<double>(std::max(total, std::size_t{1})));
  if (share <= 0.02 || share >= 1) return "";
  return fmt::format("  about {:.0f} s left", state.elapsed_s * (1 - share) / share);
}

}  // namespace

std::string progress_line(const tune::SessionState& state, const tune::Budget& budget,
                          std::size_t total) {
  const std::size_t number = state.done + (state.current != nullptr ? 1 : 0);
  std::string line = state.finals_round > 0
                         ? fmt::format("finals {} of {}", state.finals_round, state.finals_rounds)
                         : fmt::format("evaluation {} of {}", std::min(number, total), total);
  if (state.best != nullptr) line += "  best " + format_ns(state.best->time_ms * 1e6);
  if (state.last != nullptr && state.last->ok())
    line += "  last " + format_ns(state.last->time_ms * 1e6);
  for (std::size_t status = 1; status < state.by_status.size(); ++status)
    if (state.by_status[status] > 0)
      line += fmt::format("  {} {}", state.by_status[status],
                          status_name(static_cast<EvaluationStatus>(status)));
  line += time_left(state, budget, total);
  if (state.current != nullptr) line += "  " + state.current->text();
  return line;
}

}  // namespace purlin::cli
