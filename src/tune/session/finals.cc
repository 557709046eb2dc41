// SPDX-License-Identifier: Apache-2.0
#include "tune/session/finals.h"

#include <algorithm>

namespace purlin::tune {
namespace {

double fastest_ms(const Evaluation& evaluation) {
  double fastest = evaluation.time_ms;
  for (const Sample& sample : evaluation.samples) fastest = std::min(fastest, sample.ms);
  return fastest;
}

// Samples after which the search may have given up a config for one disturbed sample.
constexpr std::size_t kEarly = 2;

// The fastest few, those given up early, and the default wherever it stands. On a noisy device
// medians of the search mislead, so a candidate within reach by its fastest sample is in too.
std::vector<Finalist> choose(const std::vector<Evaluation>& evaluations,
                             std::optional<std::size_t> default_evaluation,
                             const FinalsOptions& options) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < evaluations.size(); ++i)
    if (evaluations[i].ok()) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return evaluations[a].time_ms < evaluations[b].time_ms;
  });
  std::vector<Finalist> chosen;
  std::size_t chances = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const Evaluation& evaluation = evaluations[order[rank]];
    const bool is_default = order[rank] == default_evaluation;
    const double reach = evaluations[order.front()].time_ms * (1 + options.within);
    const bool fast =
        rank < options.candidates && (rank < options.at_least || fastest_ms(evaluation) <= reach);
    const bool chance =
        !fast && !is_default && evaluation.raced_out && evaluation.samples.size() <= kEarly &&
        chances < options.second_chances &&
        fastest_ms(evaluation) <= evaluations[order.front()].time_ms * (1 + options.chance_within);
    if (!fast && !is_default && !chance) continue;
    chances += chance ? 1 : 0;
    Finalist finalist;
    finalist.evaluation = order[rank];
    finalist.samples = evaluation.samples;
    finalist.time_ms = evaluation.time_ms;
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
    const double time = median_ms(finalist.samples);
    if (best > 0 && time >= best) continue;
    best = time;
    bound = measure::median_interval_ms(finalist.samples).high;
  }
  for (Finalist& finalist : finalists) {
    if (finalist.is_default || finalist.beaten || !finalist.problem.empty()) continue;
    const measure::Interval interval = measure::median_interval_ms(finalist.samples);
    finalist.beaten = interval.low > best * (1 + options.within) ||
                      (rounds >= 2 && interval.low > std::max(bound, best * (1 + options.tie_cap)));
  }
}

void decide(Verdicts& verdict, const Space& space, const std::vector<Evaluation>& evaluations,
            double tie_cap) {
  std::vector<Finalist>& finalists = verdict.finalists;
  std::stable_sort(finalists.begin(), finalists.end(), [](const Finalist& a, const Finalist& b) {
    if (a.problem.empty() != b.problem.empty()) return a.problem.empty();
    return a.time_ms < b.time_ms;
  });
  // A tie overlaps the lowest one's interval. The default wins a tie, for it costs nobody a change;
  // then the space's order decides, which is the same in every session.
  const auto rank = [&](std::size_t i) {
    const auto place = space.find(evaluations[finalists[i].evaluation].config);
    return std::pair(!finalists[i].is_default, place.value_or(space.size()));
  };
  std::vector<std::size_t> equals;
  for (std::size_t i = 0; i < finalists.size(); ++i)
    if (finalists[i].problem.empty() && !finalists[i].beaten &&
        finalists[i].interval.low <= finalists.front().interval.high &&
        finalists[i].time_ms <= finalists.front().time_ms * (1 + tie_cap))
      equals.push_back(i);
  if (equals.empty()) equals.push_back(0);
  verdict.winner =
      *std::min_element(equals.begin(), equals.end(),
                        [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  for (const std::size_t i : equals)
    if (i != verdict.winner) verdict.ties.push_back(i);
  for (std::size_t i = 0; i < finalists.size(); ++i)
    if (finalists[i].is_default && finalists[i].problem.empty()) verdict.fallback = i;
}

}  // namespace

Finals::Finals(const Space& space, const std::vector<Evaluation>& evaluations,
               std::optional<std::size_t> default_evaluation, const measure::Policy& policy,
               const FinalsOptions& options, bool again)
    : space_(space),
      evaluations_(evaluations),
      policy_(policy),
      options_(options),
      again_(again),
      finalists_(choose(evaluations, default_evaluation, options)),
      fresh_(finalists_.size()) {
  policy_.give_up_ms = 0;
  policy_.min_samples = policy_.max_samples = options.samples;
}

std::optional<std::size_t> Finals::next() {
  // A lone candidate is measured again all the same: it has to work more than once.
  while (again_ && !finalists_.empty() && rounds_ < options_.rounds) {
    if (turn_ == finalists_.size()) {
      end_round();
      continue;
    }
    // Each round begins with another.
    const std::size_t i = (turn_ + static_cast<std::size_t>(rounds_)) % finalists_.size();
    if (!finalists_[i].problem.empty() || finalists_[i].beaten) {
      ++turn_;
      continue;
    }
    out_ = i;
    return finalists_[i].evaluation;
  }
  return std::nullopt;
}

void Finals::report(const Evaluation& measured) {
  if (!out_) return;
  const std::size_t i = *out_;
  out_.reset();
  ++turn_;
  if (measured.ok()) {
    fresh_[i].insert(fresh_[i].end(), measured.samples.begin(), measured.samples.end());
  } else {
    finalists_[i].problem =
        measured.message.empty() ? std::string(status_name(measured.status)) : measured.message;
  }
}

void Finals::end_round() {
  for (std::size_t i = 0; i < finalists_.size(); ++i)
    if (finalists_[i].problem.empty() && !finalists_[i].beaten) finalists_[i].samples = fresh_[i];
  turn_ = 0;
  drop_beaten(finalists_, options_, ++rounds_);
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
    finalist.interval = measure::median_interval_ms(finalist.samples);
  }
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
