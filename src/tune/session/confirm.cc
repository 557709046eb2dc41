// SPDX-License-Identifier: Apache-2.0
#include "tune/session/confirm.h"

#include "base/text.h"

#include <algorithm>

namespace purlin::tune {
namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Result<Confirmation> confirm(const Config& winner, const Config& fallback,
                             const measure::Policy& policy, const ConfirmOptions& options,
                             const FreshEvaluator& fresh, const std::function<bool()>& go_on) {
  measure::Policy fixed = policy;
  fixed.give_up_ms = 0;
  fixed.min_samples = fixed.max_samples = options.samples;
  Confirmation made;
  for (int process = 0; process < options.processes; ++process) {
    if (!go_on()) {
      made.problem = "it was not confirmed in full";
      return made;
    }
    PURLIN_ASSIGN(const std::unique_ptr<Evaluator> evaluator, fresh());
    std::vector<Sample> of_winner, of_fallback;
    for (int round = 0; round < options.rounds; ++round)
      for (int turn = 0; turn < 2; ++turn) {
        // Who goes first changes, so that neither always runs on the warmer device.
        const bool is_winner = (turn + round + process) % 2 == 0;
        PURLIN_ASSIGN(const Evaluation evaluation,
                      evaluator->evaluate(is_winner ? winner : fallback, fixed));
        if (!evaluation.ok()) {
          if (!is_winner)
            return error(Code::kFailed, "the default failed when it was measured again: {}",
                         evaluation.message);
          made.problem = "it failed in a fresh process: " + evaluation.message;
          return made;
        }
        std::vector<Sample>& all = is_winner ? of_winner : of_fallback;
        all.insert(all.end(), evaluation.samples.begin(), evaluation.samples.end());
      }
    const double time = median_ms(of_winner);
    made.ratios.push_back(time > 0 ? median_ms(of_fallback) / time : 0);
    if (made.ratios.back() < 1 - options.tolerance) break;  // the others cannot save it
  }
  made.median = made.ratios.empty() ? 0 : median_of(made.ratios);
  const double least =
      made.ratios.empty() ? 0 : *std::min_element(made.ratios.begin(), made.ratios.end());
  if (least < 1 - options.tolerance)
    made.problem = fmt::format("a fresh process measured it {:.2f} % slower than the default",
                               (1 / least - 1) * 100);
  else if (made.median < 1 + options.least_gain)
    made.problem = fmt::format("in fresh processes it gains {:.2f} %, less than {:.2f} %",
                               (made.median - 1) * 100, options.least_gain * 100);
  made.holds = made.problem.empty();
  return made;
}

}  // namespace purlin::tune
