// SPDX-License-Identifier: Apache-2.0
#include "tune/session/confirm.h"

#include "base/text.h"

#include <algorithm>
#include <optional>

namespace purlin::tune {
namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The default's median time over the winner's in one process; nullopt where the winner failed, with
// why in `problem`.
Result<std::optional<double>> ratio_in(Evaluator& evaluator, const Config& winner,
                                       const Config& fallback, const measure::Policy& policy,
                                       int rounds, int first, std::string& problem) {
  std::vector<Sample> of_winner, of_fallback;
  for (int round = 0; round < rounds; ++round)
    for (int turn = 0; turn < 2; ++turn) {
      // Who goes first changes, so that neither always runs on the warmer device.
      const bool is_winner = (turn + round + first) % 2 == 0;
      PURLIN_ASSIGN(const Evaluation made,
                    evaluator.evaluate(is_winner ? winner : fallback, policy));
      if (!made.ok() && !is_winner)
        return error(Code::kFailed, "the default failed when it was measured again: {}",
                     made.message);
      if (!made.ok()) {
        problem = "it failed in a fresh process: " + made.message;
        return std::optional<double>();
      }
      std::vector<Sample>& all = is_winner ? of_winner : of_fallback;
      all.insert(all.end(), made.samples.begin(), made.samples.end());
    }
  const double time = median_ms(of_winner);
  return std::optional<double>(time > 0 ? median_ms(of_fallback) / time : 0);
}

Result<Confirmation> confirm_in_full(const Config& winner, const Config& fallback,
                                     const measure::Policy& policy, const ConfirmOptions& options,
                                     const FreshEvaluator& fresh,
                                     const std::function<bool()>& go_on) {
  using Inputs = measure::Policy::Inputs;
  measure::Policy fixed = policy;
  fixed.give_up_ms = 0;
  fixed.min_samples = fixed.max_samples = options.samples;
  measure::Policy other = fixed;
  other.inputs = options.other_inputs;
  Confirmation made;
  const auto slower = [](double ratio, std::string_view where) {
    return fmt::format("a fresh process measured it {:.2f} % slower than the default{}",
                       (1 / ratio - 1) * 100, where);
  };
  for (int process = 0; process < options.processes; ++process) {
    if (!go_on()) return error(Code::kCancelled, "stopped before process {}", process);
    PURLIN_ASSIGN(const std::unique_ptr<Evaluator> evaluator, fresh());
    PURLIN_ASSIGN(
        const std::optional<double> ratio,
        ratio_in(*evaluator, winner, fallback, fixed, options.rounds, process, made.problem));
    if (!ratio) return made;
    made.ratios.push_back(*ratio);
    if (*ratio < 1 - options.tolerance) made.problem = slower(*ratio, "");
    if (made.problem.empty() && other.inputs != Inputs::kAsSpec) {
      PURLIN_ASSIGN(
          const std::optional<double> beside,
          ratio_in(*evaluator, winner, fallback, other, options.rounds, process, made.problem));
      if (!beside) return made;
      made.other_ratios.push_back(*beside);
      if (*beside < 1 - options.other_tolerance)
        made.problem =
            slower(*beside, other.inputs == Inputs::kReuse ? " where inputs lie in the cache"
                                                           : " where inputs come from memory");
    }
    if (!made.problem.empty()) break;  // the others cannot save it
  }
  made.median = made.ratios.empty() ? 0 : median_of(made.ratios);
  if (made.problem.empty() && made.median < 1 + options.least_gain)
    made.problem = fmt::format("in fresh processes it gains {:.2f} %, less than {:.2f} %",
                               (made.median - 1) * 100, options.least_gain * 100);
  made.holds = made.problem.empty();
  return made;
}

}  // namespace

Result<Confirmation> confirm(const Config& winner, const Config& fallback,
                             const measure::Policy& policy, const ConfirmOptions& options,
                             const FreshEvaluator& fresh, const std::function<bool()>& go_on) {
  Result<Confirmation> made = confirm_in_full(winner, fallback, policy, options, fresh, go_on);
  if (made.status().code() != Code::kCancelled) return made;
  Confirmation stopped;
  stopped.problem = "it was not confirmed in full";
  return stopped;
}

}  // namespace purlin::tune
