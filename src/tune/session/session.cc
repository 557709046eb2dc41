// SPDX-License-Identifier: Apache-2.0
#include "tune/session/session.h"

#include "measure/race.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace purlin::tune {
namespace {

// While the device's noise is not known, a config whose time cannot fall below this multiple of the
// best is not worth more samples; measure/ adds its own margin.
constexpr double kBlindReach = 1.15;
// By objective: the winner may be slower than the fastest by this factor. A GPU under load draws at
// most about four times the power of a GPU that is little used. So a kernel that takes more than
// four times as long needs more energy. In the product time counts twice.
constexpr double kReach[] = {1, 4, 2};

// Samples of a contender in the search, as a multiple of the fewest.
constexpr int kContender = 2;

// Of a budget in evaluations: this many configs may be asked for before their results arrive.
constexpr std::size_t kBlindShare = 8, kBlindLow = 4;

// Configs that are compiled though another may be asked for. Of four, two thirds are asked for.
// More keep the compilers from what is asked for, where a compilation takes seconds.
constexpr std::size_t kGuesses = 4;

// Of a budget in seconds, the finals may take this share of what the start left.
constexpr double kFinalsShare = 0.4;
// What the finals would take is computed after each of the first evaluations, then at times.
constexpr std::size_t kFewEvaluations = 256, kSomeEvaluations = 16;

}  // namespace

class TuningSession::Impl {
 public:
  Impl(const Space& space, Strategy& strategy, Journal* journal, const SessionOptions& options,
       const SessionTraits& traits, Clock& clock)
      : space_(space),
        strategy_(strategy),
        journal_(journal),
        options_(options),
        traits_(traits),
        clock_(clock),
        start_ns_(clock.monotonic_ns()),
        rematches_(result_.evaluations, finals_options(), options.policy.max_samples) {
    recall();
    prepare_default();
  }

  Result<std::optional<Request>> next(const Choose& choose) {
    if (stopped()) return std::optional<Request>();
    if (phase_ == Phase::kDefault) {
      if (std::optional<Request> request = next_default()) return request;
      if (phase_ == Phase::kDefault) return std::optional<Request>();  // it is out
    }
    if (phase_ == Phase::kSearch) {
      if (std::optional<Request> request = next_of_search(choose)) return request;
      if (phase_ == Phase::kSearch) return std::optional<Request>();
    }
    if (phase_ == Phase::kFinals) {
      if (out_.empty() && has_time_for_finals())
        if (std::optional<Request> request = next_of_finals()) return request;
      if (!out_.empty()) return std::optional<Request>();
      if (stopped()) return std::optional<Request>();
      phase_ = Phase::kOver;
      if (journal_ != nullptr && journal_->finished().empty())
        PURLIN_TRY(journal_->finish(end_name(result_.end), options_.budget.text()));
    }
    return std::optional<Request>();
  }

  std::optional<Request> next_rematch() {
    if (!traits_.repeats || rematch_out_ || phase_ != Phase::kSearch || stopped() || is_spent())
      return std::nullopt;
    // Who wants no second measurement gets none. Of other objectives a batch says nothing.
    if (options_.finals.rounds <= 0 || options_.objective != Objective::kTime) return std::nullopt;
    const std::optional<std::size_t> place = rematches_.next();
    if (!place) return std::nullopt;
    Request request{++last_id_, result_.evaluations[*place].config, options_.policy, false, true};
    if (is_timed()) request.policy.limit_s = left_s();
    rematch_out_ = request.id;
    return request;
  }

  Status report(const Request& request, Evaluation made) {
    if (request.rematch) return report_rematch(request, made);
    const auto out = std::find(out_.begin(), out_.end(), request.id);
    if (out == out_.end())
      return error(Code::kInvalid, "an evaluation was reported that was not asked for: {}",
                   request.config.text());
    out_.erase(out);
    judge(made);
    if (request.finals) {
      finals_->report(made);
      return Status::ok();
    }
    made.config = request.config;
    made.cumulative_cost_s = cost_s_ + made.cost_s;
    const double now_s = wall_s();
    if (journal_ != nullptr) PURLIN_TRY(journal_->append(made, now_s));
    const std::size_t place = result_.evaluations.size();
    known_.emplace(made.config.text(), place);
    count(made, now_s);
    if (phase_ == Phase::kDefault) {
      take_default(place);
    } else if (const auto proposal = proposal_of(request); proposal != ahead_.end()) {
      const std::size_t index = proposal->index;
      ahead_.erase(proposal);
      tell(index, place);
    }
    report_progress();
    return Status::ok();
  }

  Status report_rematch(const Request& request, const Evaluation& made) {
    if (rematch_out_ != request.id)
      return error(Code::kInvalid, "a rematch was reported that was not asked for: {}",
                   request.config.text());
    rematch_out_.reset();
    if (phase_ != Phase::kSearch) return Status::ok();  // the finals have begun
    const std::optional<RematchRound> round = rematches_.report(made);
    if (!round) return Status::ok();
    if (journal_ != nullptr) journal_->note(*round);
    find_best();
    return Status::ok();
  }

  Status abandon(const Request& request) {
    if (request.rematch) {
      rematch_out_.reset();
      cut_ = true;
      return Status::ok();
    }
    const auto out = std::find(out_.begin(), out_.end(), request.id);
    if (out == out_.end())
      return error(Code::kInvalid, "an evaluation was abandoned that was not asked for: {}",
                   request.config.text());
    out_.erase(out);
    cut_ = true;
    if (const auto proposal = proposal_of(request); proposal != ahead_.end()) proposal->request = 0;
    return Status::ok();
  }

  std::vector<Config> announced() {
    if (phase_ == Phase::kSearch && !stopped()) fill();
    return std::exchange(announced_, {});
  }

  Result<SessionResult> result() {
    SessionResult made = result_;
    made.elapsed_s = wall_s();
    made.noise = measure::pooled_noise(noises_);
    made.rematched = rematches_.outcome();
    if (phase_ != Phase::kOver) made.end = SessionResult::End::kStopped;
    if (finals_) {
      PURLIN_ASSIGN(made.verdict, finals_->verdict());
    } else {
      FinalsOptions none = finals_options();
      none.rounds = 0;
      Finals by_search(space_, result_.evaluations, result_.default_evaluation, options_.policy,
                       none, traits_.executes);
      PURLIN_ASSIGN(made.verdict, by_search.verdict());
    }
    return made;
  }

  const SessionResult& so_far() const { return result_; }
  std::optional<std::size_t> best() const { return best_; }

 private:
  enum class Phase { kDefault, kSearch, kFinals, kOver };
  // A config the strategy asked for, whose result is not known.
  struct Proposal {
    std::size_t index = 0;  // in the space
    Config config;
    std::size_t request = 0;  // its id, when it is out
  };

  std::deque<Proposal>::iterator proposal_of(const Request& request) {
    return std::find_if(ahead_.begin(), ahead_.end(),
                        [&](const Proposal& p) { return p.request == request.id; });
  }

  FinalsOptions finals_options() const {
    FinalsOptions options = options_.finals;
    options.objective = options_.objective;
    return options;
  }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  double wall_s() const {
    return earlier_s_ + options_.spent_s +
           static_cast<double>(clock_.monotonic_ns() - start_ns_) * 1e-9;
  }
  // What a budget in seconds counts.
  double passed_s() const { return traits_.executes ? wall_s() : cost_s_; }

  bool is_timed() const { return options_.budget.seconds > 0 && traits_.executes; }

  // What the finals would take of a budget in seconds by now, where they fit.
  double finals_reserve_s() const {
    return is_timed()
               ? finals_s(result_.evaluations, result_.default_evaluation, finals_options(),
                          kFinalsShare * (options_.budget.seconds - options_.spent_s), is_out())
               : 0;
  }

  // What a budget in seconds leaves for the search after the latest evaluation. A session that goes
  // on makes the same choices. So only what the journal has counts: no rematches, and not how long
  // this start took. Many evaluations are not all looked at again after each.
  double left_for_search_s(double now_s) {
    const std::size_t made = result_.evaluations.size();
    if (made <= kFewEvaluations || made % kSomeEvaluations == 0) {
      std::optional<std::size_t> default_evaluation;
      if (options_.default_config)
        if (const auto found = known_.find(options_.default_config->text()); found != known_.end())
          default_evaluation = found->second;
      search_reserve_s_ = finals_s(result_.evaluations, default_evaluation, finals_options(),
                                   kFinalsShare * options_.budget.seconds, {});
    }
    return options_.budget.seconds - now_s - search_reserve_s_;
  }

  IsOut is_out() const {
    return [this](std::size_t evaluation) { return rematches_.is_out(evaluation); };
  }

  // Of the evaluations, those that a budget of evaluations counts.
  std::size_t counted() const {
    return result_.evaluations.size() - std::min(not_measured_, options_.budget.evaluations);
  }

  // The next evaluation is taken to take as long as the median so far.
  bool is_spent() const {
    if (cut_) return true;
    double passed = passed_s();
    if (is_timed()) passed += finals_reserve_s() + (costs_.empty() ? 0 : median_ms(costs_));
    return options_.budget.spent(counted(), passed) >= 1;
  }

  // Of a budget in seconds: each further round has to fit. A session that goes on and has spent all
  // of it before holds finals all the same.
  bool has_time_for_finals() {
    if (!is_timed() || !finals_->at_round_start()) return !cut_;
    if (cut_) return false;
    if (!finals_end_s_) {
      const bool searched = result_.evaluations.size() > result_.resumed;
      finals_end_s_ = std::max(options_.budget.seconds,
                               searched ? 0 : passed_s() + finals_reserve_s() * (1 + 1e-9));
    }
    return passed_s() + finals_->round_s() <= *finals_end_s_;
  }

  // Applies the session's requirements on a config, next to those of the spec.
  void judge(Evaluation& made) const {
    if (!made.ok() || !options_.accept) return;
    const Status accepted = options_.accept(made);
    if (accepted.is_ok()) return;
    made.status = EvaluationStatus::kInvalid;
    made.message = accepted.message();
    made.samples.clear();
    made.raced_out = false;
  }

  // What the search minimises. Of a config that was out of the race there is no energy: it is taken
  // to draw as much as the others.
  std::optional<double> value_of(const Evaluation& made) const {
    if (!made.ok()) return std::nullopt;
    const double value = objective_value(made, options_.objective);
    if (std::isfinite(value)) return value;
    const double energy_mj = powers_w_.empty() ? 0 : median_ms(powers_w_) * made.time_ms;
    if (energy_mj <= 0) return std::nullopt;
    return energy_mj * (options_.objective == Objective::kEdp ? made.time_ms : 1);
  }

  void recall() {
    if (journal_ == nullptr) return;
    for (const Journal::Record& record : journal_->records()) {
      known_.emplace(record.evaluation.config.text(), result_.evaluations.size());
      earlier_s_ = record.elapsed_s;
      count(record.evaluation, record.elapsed_s);
    }
    result_.resumed = result_.evaluations.size();
    for (const RematchRound& round : journal_->rematches()) {
      std::vector<std::size_t> places;
      for (const Rematch& each : round)
        if (const auto found = known_.find(each.config.text()); found != known_.end())
          places.push_back(found->second);
      if (!places.empty() && places.size() == round.size()) rematches_.recall(round, places);
    }
    find_best();
  }

  void count(const Evaluation& evaluation, double now_s) {
    result_.evaluations.push_back(evaluation);
    Evaluation& made = result_.evaluations.back();
    // Configs compile ahead, and several devices work at once.
    passed_s_.push_back(std::clamp(now_s - last_s_, 0.0, std::max(made.cost_s, 0.0)));
    last_s_ = now_s;
    cost_s_ += made.cost_s;
    made.cumulative_cost_s = cost_s_;
    ++by_status_[static_cast<std::size_t>(made.status)];
    not_measured_ += !made.was_measured();
    if (const double noise = measure::relative_noise(made.samples); made.ok() && noise > 0)
      noises_.push_back(noise);
    if (made.ok() && made.power_w > 0) powers_w_.push_back({made.power_w, 0});
    if (made.ok()) costs_.push_back({made.cost_s, 0});
    consider(result_.evaluations.size() - 1);
    if (is_timed()) left_for_search_s_.push_back(left_for_search_s(now_s));
  }

  void consider(std::size_t place) {
    const auto value = [&](std::size_t i) {
      return objective_value(result_.evaluations[i], options_.objective);
    };
    if (std::isfinite(value(place)) && !rematches_.is_out(place) &&
        (!best_ || value(place) < value(*best_)))
      best_ = place;
  }

  // Again, once the best by the search's measurement turned out to lead by luck.
  void find_best() {
    if (!best_ || !rematches_.is_out(*best_)) return;
    const std::size_t before = *best_;
    best_.reset();
    for (std::size_t place = 0; place < result_.evaluations.size(); ++place) consider(place);
    if (!best_) best_ = before;
  }

  void report_progress(const Config* current = nullptr) const {
    if (!options_.on_progress) return;
    SessionState state;
    state.done = counted();
    state.resumed = result_.resumed;
    state.elapsed_s = passed_s();
    state.spent = options_.budget.spent(state.done, state.elapsed_s);
    state.last = result_.evaluations.empty() ? nullptr : &result_.evaluations.back();
    state.best = best_ ? &result_.evaluations[*best_] : nullptr;
    state.by_status = by_status_;
    state.current = current;
    if (finals_) state.finals_round = finals_->round(), state.finals_rounds = finals_->rounds();
    options_.on_progress(state);
  }

  Request hand_out(const Config& config, std::size_t index, bool may_give_up) {
    Request request{++last_id_, config, options_.policy};
    if (may_give_up && best_ && traits_.executes) {
      request.policy.noise = measure::pooled_noise(noises_);
      request.policy.give_up_ms = std::min(kReach[static_cast<std::size_t>(options_.objective)] *
                                               (request.policy.noise > 0 ? 1.0 : kBlindReach) *
                                               result_.evaluations[*best_].time_ms,
                                           measure::kMaxGiveUpMs);
      // Who is not beaten by then is settled in the finals, where samples tell more.
      request.policy.max_samples = std::min(request.policy.max_samples,
                                            kContender * std::max(request.policy.min_samples, 1));
    }
    const double within = strategy_.count_within(index);
    if (within > 0 && traits_.executes)
      request.policy.count_below_ms = best_ ? within * result_.evaluations[*best_].time_ms
                                            : std::numeric_limits<double>::infinity();
    // Only the default may outlast the budget: a session needs one config.
    if (may_give_up && is_timed()) request.policy.limit_s = left_s();
    out_.push_back(request.id);
    report_progress(&config);
    return request;
  }

  double left_s() const { return std::max(options_.budget.seconds - passed_s(), 1e-3); }

  void tell(std::size_t index, std::size_t place) {
    const Evaluation& evaluation = result_.evaluations[place];
    Outcome outcome;
    outcome.time_ms = value_of(evaluation);
    outcome.cost_s = evaluation.cost_s;
    outcome.evaluation = &evaluation;
    if (traits_.executes) outcome.passed_s = passed_s_[place];
    if (is_timed()) outcome.left_s = left_for_search_s_[place];
    silent_ = false;
    strategy_.tell(index, outcome);
  }

  void prepare_default() {
    if (options_.default_config) default_index_ = space_.find(*options_.default_config);
    if (default_index_) return;
    if (options_.default_config)
      result_.default_problem =
          "the default config (" + options_.default_config->text() + ") breaks a constraint";
    phase_ = Phase::kSearch;
  }

  // The strategy is not asked before it knows how the default did.
  std::optional<Request> next_default() {
    if (!out_.empty()) return std::nullopt;
    const auto found = known_.find(options_.default_config->text());
    if (found == known_.end()) return hand_out(*options_.default_config, *default_index_, false);
    take_default(found->second);
    return std::nullopt;
  }

  void take_default(std::size_t place) {
    result_.default_evaluation = place;
    const Evaluation& made = result_.evaluations[place];
    tell(*default_index_, place);
    if (!made.ok()) result_.default_problem = "the default config failed: " + made.message;
    phase_ = Phase::kSearch;
  }

  std::optional<Request> next_of_search(const Choose& choose) {
    fill();
    if (ahead_.empty()) {
      end_search(is_spent() ? SessionResult::End::kBudget : SessionResult::End::kSpace);
      return std::nullopt;
    }
    std::vector<Proposal*> waiting;
    std::vector<const Config*> configs;
    for (Proposal& proposal : ahead_) {
      if (proposal.request != 0) continue;
      waiting.push_back(&proposal);
      configs.push_back(&proposal.config);
    }
    if (waiting.empty()) return std::nullopt;  // all are out
    const std::optional<std::size_t> chosen = choose ? choose(configs) : 0;
    if (!chosen && !out_.empty()) return std::nullopt;
    if (is_spent()) {
      if (out_.empty()) end_search(SessionResult::End::kBudget);
      return std::nullopt;
    }
    if (!chosen) return std::nullopt;
    Proposal& proposal = *waiting[*chosen];
    Request request = hand_out(proposal.config, proposal.index, true);
    proposal.request = request.id;
    return request;
  }

  // The number of configs that a strategy chooses before it has the results of the previous ones.
  // When evaluations are the limit, informed choices matter more than idle compilers.
  std::size_t lookahead() const {
    if (options_.budget.evaluations == 0) return traits_.lookahead;
    const std::size_t share = options_.budget.evaluations / kBlindShare;
    return std::min(traits_.lookahead, std::max({kBlindLow, 2 * traits_.devices, share}));
  }

  // Asks the strategy for configs up to the lookahead.
  void fill() {
    while (!silent_ && ahead_.size() < lookahead()) {
      // Nothing is compiled that the budget would not let run.
      if (options_.budget.evaluations > 0 &&
          counted() + ahead_.size() >= options_.budget.evaluations)
        break;
      const std::optional<std::size_t> index = strategy_.ask();
      silent_ = !index;
      if (!index) break;
      if (traits_.guesses) guess();
      Proposal proposal{*index, space_.config(*index)};
      if (const auto found = known_.find(proposal.config.text()); found != known_.end()) {
        tell(*index, found->second);
        continue;
      }
      if (!traits_.guesses || named_.insert(*index).second) announced_.push_back(proposal.config);
      ahead_.push_back(std::move(proposal));
    }
  }

  // Names what may be asked for next.
  void guess() {
    for (const std::size_t index : strategy_.likely(std::min(traits_.lookahead, kGuesses)))
      if (Config config = space_.config(index);
          !known_.contains(config.text()) && named_.insert(index).second)
        announced_.push_back(std::move(config));
  }

  void end_search(SessionResult::End end) {
    result_.end = end;
    ahead_.clear();
    phase_ = Phase::kFinals;
    finals_.emplace(space_, result_.evaluations, result_.default_evaluation, options_.policy,
                    finals_options(), traits_.executes, is_out());
  }

  std::optional<Request> next_of_finals() {
    const std::optional<std::size_t> place = finals_->next();
    if (!place) return std::nullopt;
    report_progress(&result_.evaluations[*place].config);
    if (stopped()) return std::nullopt;
    Request request{++last_id_, result_.evaluations[*place].config, finals_->policy(), true};
    if (is_timed()) request.policy.limit_s = std::max(*finals_end_s_ - passed_s(), 1e-3);
    out_.push_back(request.id);
    return request;
  }

  const Space& space_;
  Strategy& strategy_;
  Journal* journal_;
  const SessionOptions& options_;
  const SessionTraits traits_;
  Clock& clock_;
  std::int64_t start_ns_;
  double earlier_s_ = 0, cost_s_ = 0, last_s_ = 0;
  std::vector<double> passed_s_;  // of each evaluation: since the one before it, or its cost
  std::vector<double> left_for_search_s_;  // after each evaluation: Outcome::left_s
  double search_reserve_s_ = 0;            // for the finals, as left_for_search_s has it
  bool cut_ = false;                       // an evaluation was abandoned
  std::optional<double> finals_end_s_;     // of a budget in seconds: when they have to be over
  std::vector<Sample> costs_;              // of each config that worked, in seconds
  std::vector<double> noises_;    // measure::relative_noise of each config that was timed in full
  std::vector<Sample> powers_w_;  // of each config whose energy was measured
  std::array<std::size_t, 8> by_status_{};
  std::size_t not_measured_ = 0;
  std::optional<std::size_t> best_;
  std::unordered_map<std::string, std::size_t> known_;  // by config, in result_.evaluations
  SessionResult result_;
  Phase phase_ = Phase::kDefault;
  std::optional<std::size_t> default_index_;
  std::deque<Proposal> ahead_;
  bool silent_ = false;  // the strategy has no config until the next result
  std::vector<Config> announced_;
  std::unordered_set<std::size_t> named_;  // announced at any time
  std::vector<std::size_t> out_;           // ids of requests
  std::size_t last_id_ = 0;
  std::optional<Finals> finals_;
  Rematches rematches_;  // of result_, which is before it
  std::optional<std::size_t> rematch_out_;
};

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

TuningSession::TuningSession(const Space& space, Strategy& strategy, Journal* journal,
                             const SessionOptions& options, const SessionTraits& traits,
                             Clock& clock)
    : impl_(std::make_unique<Impl>(space, strategy, journal, options, traits, clock)) {}
TuningSession::~TuningSession() = default;
Result<std::optional<TuningSession::Request>> TuningSession::next(const Choose& choose) {
  return impl_->next(choose);
}
Status TuningSession::report(const Request& request, Evaluation made) {
  return impl_->report(request, std::move(made));
}
Status TuningSession::abandon(const Request& request) { return impl_->abandon(request); }
std::optional<TuningSession::Request> TuningSession::next_rematch() {
  return impl_->next_rematch();
}
std::vector<Config> TuningSession::announced() { return impl_->announced(); }
Result<SessionResult> TuningSession::result() { return impl_->result(); }
const std::vector<Evaluation>& TuningSession::evaluations() const {
  return impl_->so_far().evaluations;
}
std::optional<std::size_t> TuningSession::best() const { return impl_->best(); }

}  // namespace purlin::tune
