// SPDX-License-Identifier: Apache-2.0
#include "tune/session/session.h"

#include "measure/race.h"

#include <deque>
#include <unordered_map>

namespace purlin::tune {
namespace {

// While the device's noise is not known, a config whose time cannot fall below this multiple of the
// best is not worth more samples; measure/ adds its own margin.
constexpr double kBlindReach = 1.15;

class Session {
 public:
  Session(const Space& space, Strategy& strategy, Evaluator& evaluator, Journal* journal,
          const SessionOptions& options, Clock& clock)
      : space_(space),
        strategy_(strategy),
        evaluator_(evaluator),
        journal_(journal),
        options_(options),
        clock_(clock),
        start_ns_(clock.monotonic_ns()) {}

  Result<SessionResult> run() {
    recall();
    PURLIN_TRY(evaluate_default());
    PURLIN_TRY(search());
    const auto go_on = [this] {
      report(true);
      return !stopped();
    };
    if (!stopped()) {
      PURLIN_ASSIGN(result_.verdict,
                    hold_finals(space_, result_.evaluations, result_.default_evaluation, evaluator_,
                                options_.policy, options_.finals, go_on));
    }
    if (stopped()) {
      result_.end = SessionResult::End::kStopped;
      FinalsOptions none = options_.finals;
      none.rounds = 0;
      if (!result_.verdict) {
        PURLIN_ASSIGN(result_.verdict,
                      hold_finals(space_, result_.evaluations, result_.default_evaluation,
                                  evaluator_, options_.policy, none, go_on));
      }
    } else if (journal_ != nullptr && journal_->finished().empty()) {
      PURLIN_TRY(journal_->finish(end_name(result_.end), options_.budget.text()));
    }
    result_.elapsed_s = wall_s();
    return std::move(result_);
  }

 private:
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  double wall_s() const {
    return earlier_s_ + static_cast<double>(clock_.monotonic_ns() - start_ns_) * 1e-9;
  }
  // What a budget in seconds counts.
  double passed_s() const { return evaluator_.executes() ? wall_s() : cost_s_; }

  bool is_spent() const {
    return options_.budget.spent(result_.evaluations.size(), passed_s()) >= 1;
  }

  void recall() {
    if (journal_ == nullptr) return;
    for (const Journal::Record& record : journal_->records()) {
      known_.emplace(record.evaluation.config.text(), result_.evaluations.size());
      earlier_s_ = record.elapsed_s;
      count(record.evaluation);
    }
    result_.resumed = result_.evaluations.size();
  }

  void count(const Evaluation& evaluation) {
    result_.evaluations.push_back(evaluation);
    Evaluation& made = result_.evaluations.back();
    cost_s_ += made.cost_s;
    made.cumulative_cost_s = cost_s_;
    ++by_status_[static_cast<std::size_t>(made.status)];
    if (const double noise = measure::relative_noise(made.samples); made.ok() && noise > 0)
      noises_.push_back(noise);
    if (made.ok() && (!best_ || made.time_ms < result_.evaluations[*best_].time_ms))
      best_ = result_.evaluations.size() - 1;
  }

  void report(bool finals = false) const {
    if (!options_.on_progress) return;
    SessionState state;
    state.done = result_.evaluations.size();
    state.resumed = result_.resumed;
    state.elapsed_s = passed_s();
    state.spent = options_.budget.spent(state.done, state.elapsed_s);
    state.last = result_.evaluations.empty() ? nullptr : &result_.evaluations.back();
    state.best = best_ ? &result_.evaluations[*best_] : nullptr;
    state.by_status = by_status_;
    state.finals = finals;
    options_.on_progress(state);
  }

  // The place in result_.evaluations of the config's evaluation, made now or before.
  Result<std::size_t> evaluate(const Config& config, bool may_give_up) {
    const auto found = known_.find(config.text());
    if (found != known_.end()) return found->second;
    measure::Policy policy = options_.policy;
    if (may_give_up && best_ && evaluator_.executes()) {
      policy.noise = measure::pooled_noise(noises_);
      policy.give_up_ms =
          (policy.noise > 0 ? 1.0 : kBlindReach) * result_.evaluations[*best_].time_ms;
    }
    PURLIN_ASSIGN(Evaluation made, evaluator_.evaluate(config, policy));
    made.config = config;
    made.cumulative_cost_s = cost_s_ + made.cost_s;
    if (journal_ != nullptr) PURLIN_TRY(journal_->append(made, wall_s()));
    known_.emplace(config.text(), result_.evaluations.size());
    count(made);
    report();
    return result_.evaluations.size() - 1;
  }

  void tell(std::size_t index, const Evaluation& evaluation) {
    Outcome outcome;
    if (evaluation.ok()) outcome.time_ms = evaluation.time_ms;
    outcome.cost_s = evaluation.cost_s;
    strategy_.tell(index, outcome);
  }

  Status evaluate_default() {
    if (!options_.default_config) return Status::ok();
    const std::optional<std::size_t> index = space_.find(*options_.default_config);
    if (!index) {
      result_.default_problem =
          "the default config (" + options_.default_config->text() + ") breaks a constraint";
      return Status::ok();
    }
    PURLIN_ASSIGN(const std::size_t place, evaluate(*options_.default_config, false));
    result_.default_evaluation = place;
    tell(*index, result_.evaluations[place]);
    if (!result_.evaluations[place].ok())
      result_.default_problem = "the default config failed: " + result_.evaluations[place].message;
    return Status::ok();
  }

  Status search() {
    struct Proposal {
      std::size_t index;
      Config config;
    };
    std::deque<Proposal> ahead;
    std::size_t new_ahead = 0;  // of them not in the journal
    while (!stopped()) {
      while (ahead.size() < evaluator_.lookahead()) {
        // Nothing is compiled that the budget would not let run.
        const std::size_t sure = result_.evaluations.size() + new_ahead;
        if (options_.budget.evaluations > 0 && sure >= options_.budget.evaluations) break;
        const std::optional<std::size_t> index = strategy_.ask();
        if (!index) break;
        ahead.push_back({*index, space_.config(*index)});
        if (known_.contains(ahead.back().config.text())) continue;
        ++new_ahead;
        evaluator_.announce(ahead.back().config);
      }
      if (ahead.empty()) {
        result_.end = is_spent() ? SessionResult::End::kBudget : SessionResult::End::kSpace;
        return Status::ok();
      }
      const Proposal next = std::move(ahead.front());
      ahead.pop_front();
      if (!known_.contains(next.config.text())) {
        if (is_spent()) break;
        --new_ahead;
      }
      PURLIN_ASSIGN(const std::size_t place, evaluate(next.config, true));
      tell(next.index, result_.evaluations[place]);
    }
    result_.end = SessionResult::End::kBudget;
    return Status::ok();
  }

  const Space& space_;
  Strategy& strategy_;
  Evaluator& evaluator_;
  Journal* journal_;
  const SessionOptions& options_;
  Clock& clock_;
  std::int64_t start_ns_;
  double earlier_s_ = 0, cost_s_ = 0;
  std::vector<double> noises_;  // measure::relative_noise of each config that was timed in full
  std::array<std::size_t, 8> by_status_{};
  std::optional<std::size_t> best_;
  std::unordered_map<std::string, std::size_t> known_;  // by config, in result_.evaluations
  SessionResult result_;
};

}  // namespace

std::string_view end_name(SessionResult::End end) {
  switch (end) {
    case SessionResult::End::kBudget:
      return "budget";
    case SessionResult::End::kSpace:
      return "space";
    default:
      return "stopped";
  }
}

Result<SessionResult> run_session(const Space& space, Strategy& strategy, Evaluator& evaluator,
                                  Journal* journal, const SessionOptions& options, Clock& clock) {
  return Session(space, strategy, evaluator, journal, options, clock).run();
}

}  // namespace purlin::tune
