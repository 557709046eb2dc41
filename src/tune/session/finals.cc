// SPDX-License-Identifier: Apache-2.0
#include "tune/session/finals.h"

#include "measure/race.h"

#include <algorithm>
#include <cmath>

namespace purlin::tune {
namespace {

// The lowest that was seen of the objective.
double lowest(const Evaluation& evaluation, Objective objective) {
  double low = objective_value(evaluation, objective);
  if (objective == Objective::kTime)
    for (const Sample& sample : evaluation.samples) low = std::min(low, sample.ms);
  return low;
}

std::vector<Sample> values_of(const Evaluation& evaluation, Objective objective) {
  if (objective == Objective::kTime) return evaluation.samples;
  return {{objective_value(evaluation, objective), 0}};
}

// Samples after which the search may have given up a config for one disturbed sample.
constexpr std::size_t kEarly = 2;
// Rounds that drift needs to show, and the share of the search's error that is as good as none.
constexpr int kMinRounds = 2;
constexpr double kKnown = 0.5;

// What measuring a config again takes, in seconds: it is compiled by then, and each time it warms
// up.
double again_s(const Evaluation& evaluation, int samples) {
  const double launches = measure::Policy{}.warmup_launches;
  return evaluation.verify_s + evaluation.measure_s * (samples + launches) /
                                   (static_cast<double>(evaluation.samples.size()) + launches);
}

// The fastest few, those given up early, and the default at any rank. On a noisy device medians of
// the search mislead, so a candidate within reach by its fastest sample is in too. The place of one
// that is out goes to the next, but no further second chance is given for it.
std::vector<Finalist> choose(const std::vector<Evaluation>& evaluations,
                             std::optional<std::size_t> default_evaluation,
                             const FinalsOptions& options, const IsOut& is_out) {
  std::vector<std::size_t> order;
  const auto value = [&](std::size_t i) {
    return objective_value(evaluations[i], options.objective);
  };
  for (std::size_t i = 0; i < evaluations.size(); ++i)
    if (std::isfinite(value(i))) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return value(a) < value(b); });
  std::vector<Finalist> chosen;
  std::size_t chances = 0, rank = 0;
  double best = 0;
  for (const std::size_t index : order) {
    const Evaluation& evaluation = evaluations[index];
    const bool is_default = index == default_evaluation;
    const bool out = !is_default && is_out && is_out(index);
    if (best == 0 && !out) best = value(index);
    const double low = lowest(evaluation, options.objective);
    const bool fast = !out && rank < options.candidates &&
                      (rank < options.at_least || low <= best * (1 + options.within));
    rank += out ? 0 : 1;
    const bool chance = !fast && !is_default && evaluation.raced_out &&
                        evaluation.samples.size() <= kEarly && chances < options.second_chances &&
                        low <= best * (1 + options.chance_within);
    chances += chance ? 1 : 0;
    if (out || (!fast && !is_default && !chance)) continue;
    Finalist finalist;
    finalist.evaluation = index;
    finalist.second_chance = chance;
    finalist.samples = evaluation.samples;
    finalist.time_ms = evaluation.time_ms;
    finalist.values = values_of(evaluation, options.objective);
    finalist.value = value(index);
    finalist.searched = evaluation.raced_out ? 0 : finalist.value;
    finalist.energy_mj = evaluation.energy_mj;
    finalist.power_w = evaluation.power_w;
    finalist.is_default = is_default;
    chosen.push_back(std::move(finalist));
  }
  return chosen;
}

// Who cannot win any more: in the first round by more than noise explains, later by its interval.
// The default stays, for the gain over it is reported.
void drop_beaten(std::vector<Finalist>& finalists, const FinalsOptions& options, int rounds) {
  double best = 0, bound = 0;
  for (const Finalist& finalist : finalists) {
    if (!finalist.problem.empty()) continue;
    const double value = median_ms(finalist.values);
    if (best > 0 && value >= best) continue;
    best = value;
    bound = measure::median_interval_ms(finalist.values).high;
  }
  for (Finalist& finalist : finalists) {
    if (finalist.is_default || finalist.beaten || !finalist.problem.empty()) continue;
    const measure::Interval interval = measure::median_interval_ms(finalist.values);
    finalist.beaten = interval.low > best * (1 + options.within) ||
                      (rounds >= 2 && interval.low > std::max(bound, best * (1 + options.tie_cap)));
  }
}

// No further round would change much: one is left, or all that are left are known so well that what
// more rounds would tell apart is no gain.
bool is_decided(const std::vector<Finalist>& finalists, double error) {
  std::size_t left = 0;
  bool known = true;
  for (const Finalist& finalist : finalists) {
    if (finalist.beaten || !finalist.problem.empty()) continue;
    left += finalist.is_default ? 0 : 1;
    const measure::Interval interval = measure::median_interval_ms(finalist.values);
    known &= interval.high - interval.low <= 2 * error * median_ms(finalist.values);
  }
  return known || left <= 1;
}

}  // namespace

double finals_s(const std::vector<Evaluation>& evaluations,
                std::optional<std::size_t> default_evaluation, const FinalsOptions& options,
                double at_most_s, const IsOut& is_out) {
  double round_s = 0;
  for (const Finalist& finalist : choose(evaluations, default_evaluation, options, is_out))
    round_s += again_s(evaluations[finalist.evaluation], options.samples);
  if (round_s <= 0 || at_most_s <= 0) return 0;
  return round_s * std::min(static_cast<double>(options.rounds), std::floor(at_most_s / round_s));
}

std::vector<std::size_t> finalists_of(const std::vector<Evaluation>& evaluations,
                                      std::optional<std::size_t> default_evaluation,
                                      const FinalsOptions& options, const IsOut& is_out) {
  std::vector<std::size_t> indices;
  for (const Finalist& finalist : choose(evaluations, default_evaluation, options, is_out))
    indices.push_back(finalist.evaluation);
  return indices;
}

Finals::Finals(const Space& space, const std::vector<Evaluation>& evaluations,
               std::optional<std::size_t> default_evaluation, const measure::Policy& policy,
               const FinalsOptions& options, bool again, const IsOut& is_out)
    : space_(space),
      evaluations_(evaluations),
      policy_(policy),
      options_(options),
      again_(again),
      finalists_(choose(evaluations, default_evaluation, options, is_out)),
      fresh_(finalists_.size()),
      fresh_values_(finalists_.size()),
      fresh_by_round_(finalists_.size()) {
  // Until a round is over, what the search measured is the only one.
  if (again_)
    for (Finalist& finalist : finalists_) finalist.by_round = {{finalist.value, 0}};
  policy_.give_up_ms = 0;
  policy_.min_samples = policy_.max_samples = options.samples;
  std::vector<double> noises;
  for (const Evaluation& evaluation : evaluations)
    if (const double noise = measure::relative_noise(evaluation.samples); noise > 0)
      noises.push_back(noise);
  policy_.noise = measure::pooled_noise(std::move(noises));
}

std::optional<std::size_t> Finals::next() {
  if (!again_ || !goes_on()) return std::nullopt;
  out_ = at_turn();
  // One that was given up early mostly deserved it, and then two samples say so again.
  policy_.give_up_ms = 0;
  if (rounds_ == 0 && finalists_[*out_].second_chance && options_.objective == Objective::kTime &&
      policy_.noise > 0)
    policy_.give_up_ms = std::min(finalists_.front().time_ms, measure::kMaxGiveUpMs);
  return finalists_[*out_].evaluation;
}

// Each round begins with another.
std::size_t Finals::at_turn() const {
  return (turn_ + static_cast<std::size_t>(rounds_)) % finalists_.size();
}

// To the next turn of a finalist that takes part; a round without one is over. A lone candidate is
// measured again all the same: it has to work more than once.
void Finals::advance() {
  while (goes_on()) {
    for (; turn_ < finalists_.size(); ++turn_)
      if (!sits_out(finalists_[at_turn()])) return;
    end_round();
  }
}

int Finals::rounds() const { return std::max(options_.rounds, round()); }

double Finals::round_s() const {
  double seconds = 0;
  for (const Finalist& finalist : finalists_)
    if (!sits_out(finalist))
      seconds += again_s(evaluations_[finalist.evaluation], options_.samples);
  return seconds;
}

bool Finals::goes_on() const {
  if (decided_ || options_.rounds <= 0 || finalists_.empty()) return false;
  return rounds_ < options_.rounds || (open_ && rounds_ < options_.rounds + options_.more_rounds);
}

// In the further rounds only those count that noise keeps from beating the default.
bool Finals::sits_out(const Finalist& finalist) const {
  if (!finalist.can_win()) return true;
  if (rounds_ < options_.rounds || finalist.is_default) return false;
  const auto fallback = std::find_if(finalists_.begin(), finalists_.end(),
                                     [](const Finalist& f) { return f.is_default; });
  return fallback != finalists_.end() && median_ms(finalist.values) >= median_ms(fallback->values);
}

void Finals::report(const Evaluation& measured) {
  if (!out_) return;
  const std::size_t i = *out_;
  out_.reset();
  ++turn_;
  round_begun_ = true;
  finalists_[i].beaten |= measured.raced_out;
  if (std::isfinite(objective_value(measured, options_.objective))) {
    fresh_[i].insert(fresh_[i].end(), measured.samples.begin(), measured.samples.end());
    const std::vector<Sample> values = values_of(measured, options_.objective);
    fresh_values_[i].insert(fresh_values_[i].end(), values.begin(), values.end());
    fresh_by_round_[i].push_back({median_ms(values), 0});
    finalists_[i].energy_mj = measured.energy_mj;
    finalists_[i].power_w = measured.power_w;
  } else {
    finalists_[i].problem =
        measured.message.empty() ? std::string(status_name(measured.status)) : measured.message;
  }
  advance();
}

void Finals::end_round() {
  for (std::size_t i = 0; i < finalists_.size(); ++i)
    if (finalists_[i].problem.empty() && !finalists_[i].beaten) {
      finalists_[i].samples = fresh_[i];
      finalists_[i].values = fresh_values_[i];
      finalists_[i].by_round = fresh_by_round_[i];
    }
  turn_ = 0;
  round_begun_ = false;
  drop_beaten(finalists_, options_, ++rounds_);
  if (options_.objective != Objective::kTime) return;
  open_ = is_open(finalists_, options_.tie_cap);
  decided_ =
      !open_ && rounds_ >= kMinRounds && is_decided(finalists_, kKnown * policy_.target_error);
}

Result<std::optional<Verdicts>> Finals::verdict() {
  if (finalists_.empty()) return std::optional<Verdicts>();
  Verdicts verdict;
  verdict.finalists = finalists_;
  verdict.rounds = rounds_;
  const bool anyone = std::any_of(finalists_.begin(), finalists_.end(),
                                  [](const Finalist& f) { return f.problem.empty(); });
  if (!anyone)
    return error(
        Code::kFailed, "every finalist failed when it was measured again; the first ({}): {}",
        evaluations_[finalists_.front().evaluation].config.text(), finalists_.front().problem);
  for (Finalist& finalist : verdict.finalists) {
    if (again_ && !finalist.samples.empty()) finalist.time_ms = median_ms(finalist.samples);
    if (again_ && !finalist.values.empty()) finalist.value = median_ms(finalist.values);
    finalist.interval = measure::median_interval_ms(finalist.values);
  }
  if (again_ && rounds_ > 0)
    verdict.machine_change = machine_change(verdict.finalists, evaluations_);
  decide(verdict, space_, evaluations_, options_.tie_cap);
  return std::optional(std::move(verdict));
}

Result<std::optional<Verdicts>> hold_finals(const Space& space,
                                            const std::vector<Evaluation>& evaluations,
                                            std::optional<std::size_t> default_evaluation,
                                            Evaluator& evaluator, const measure::Policy& policy,
                                            const FinalsOptions& options,
                                            const std::function<bool()>& go_on) {
  Finals finals(space, evaluations, default_evaluation, policy, options, evaluator.executes());
  while (const std::optional<std::size_t> next = finals.next()) {
    if (!go_on()) break;
    PURLIN_ASSIGN(const Evaluation measured,
                  evaluator.evaluate(evaluations[*next].config, finals.policy()));
    finals.report(measured);
  }
  return finals.verdict();
}

}  // namespace purlin::tune
