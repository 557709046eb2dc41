// SPDX-License-Identifier: Apache-2.0
// Transfer: asks first for the configs that were fast in other runs, corrected by each evaluation
// here. Runs that mislead are dropped.
//
// The next config is the one with the highest expected improvement under the surrogate. This
// spreads the seeds, because the evaluation of one config also informs about similar configs. The
// runs are on trial at first, and their claim in use is tested: what they praise is fast here.
// - The first config, the pilot, is one that the runs rate as good, but not as the best. The best
//   of wrong runs may be the slowest config there is. The runs rate its neighbours as good, too:
//   one result of theirs is easily an accident.
//   With a budget of fewer than 20 evaluations it takes up to a third of them if the runs are
//   wrong. Three configs are then drawn first, and their order must not speak against the runs.
//   What a budget in seconds allows is not known before a config worked. Up to three are drawn
//   until then.
// - Then configs are drawn at random, until the pilot has passed or is refuted (rungs.h). Their
//   best is asked for once the pilot has passed, and has to pass, too. Of the first few in their
//   order it is the one whose neighbours they rate best. A refuted
//   pilot or best ends the trial. With a budget of 200 evaluations or more, only their best does:
//   one slow config more is little then. A cold start draws as well, so the draws are no loss. What
//   failed in the other runs is drawn last: it mostly fails here, too, and anything that works is
//   faster than it.
// - What they praise next is judged together, against the draws (judge.h). The length of this part
//   follows from the budget.
// - Each run is judged separately by its order, and dropped separately.
//
// After a drop the search goes on cold, with all that was measured here. What dropped runs say is
// only a feature of its model, which learns what it is worth: of runs that are turned round, much,
// of useless ones nothing (ensemble.h).
// The Gaussian process of a search of few evaluations takes no features.
//
// Kept runs stay on trial. Once what they praise is no gain for long, the climb from the fastest
// configs and the model (model.cc) take turns with them (turns.h). The climb asks first for the
// neighbours that the surrogate expects to be fast. The model has what the runs say as features.
#include "tune/search/allowance.h"
#include "tune/search/model_options.h"
#include "tune/search/strategy.h"
#include "tune/search/transfer/candidates.h"
#include "tune/search/transfer/judge.h"
#include "tune/search/transfer/rungs.h"
#include "tune/search/transfer/surrogate.h"
#include "tune/search/transfer/turns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

namespace purlin::tune {
namespace {

// A pass of the surrogate grows with what it has seen, and the fast region is known by then.
constexpr std::size_t kMaxModelled = 200;
constexpr std::size_t kLastRefit = 80;
// The pilot is from this part of the space, in the order of the runs, and the best of so many
// there.
constexpr double kPilotFrom = 0.05, kPilotTo = 0.15;
constexpr std::size_t kPilots = 200;
// Their best is one of this share of the configs, and of at least so many.
constexpr double kBestShare = 0.0025;
constexpr std::size_t kLeastBest = 5;
// Evaluations of a budget for which one slow config more is little: less than 1 %.
constexpr double kEnough = 200;
// Evaluations of a budget below which draws come before the pilot, and how many.
constexpr double kShort = 20;
constexpr std::size_t kDrawnFirst = 3;
// One config in so many is drawn until the runs are judged: while they are doubted, and later.
constexpr std::size_t kDrawEveryOpen = 2, kDrawEvery = 8;
constexpr std::size_t kFailedPilots = 2;  // that others take the place of
constexpr std::size_t kFewKnown = 20;
// Of what the runs praise, so many are judged: later ones are chosen by what was seen here.
constexpr std::size_t kJudgedPraised = 5;
constexpr double kDropped = 0.05, kDoubted = 0.5, kTrusted = 0.95;  // belief
// Numbers of reported configs. After the first, runs must not be doubted: a share of the budget,
// within bounds. After twice as many, they must have gained belief.
constexpr double kTrialShare = 0.1, kTrialLow = 4, kTrialHigh = 10;
constexpr std::size_t kJudgedAgain = 40;  // results that the evidence of the surrogate is read at
constexpr double kNoEvidence = -2;        // nats
// Of what they praise, so many are judged at a time, each as if it were so many deviations faster.
constexpr std::size_t kLatePraised = 12;
constexpr double kPraise = 2;
constexpr double kUniform = 3.4641016;  // what is uniform in a range of this has a deviation of 1
constexpr const char* kUnlikely = "what was measured here is likelier without them";
constexpr double kGainOfTransfer = 0.002;  // nats
// The ways to search after the trial. The other two wait until what the runs praise has been no
// gain for long: the surrogate goes on learning, and leaves its basins by itself.
enum Way : std::size_t { kPraiseWay, kClimbWay, kModelWay };
constexpr double kHandicapShare = 0.04, kHandicapLow = 3, kHandicapHigh = 30;  // of the budget

class Transfer : public Strategy {
 public:
  explicit Transfer(const StrategyRequest& request)
      : rest_request_(request),
        random_(request.seed),
        chosen_(transfer_candidates(request.space, request.priors, random_)),
        to_draw_(chosen_.uniform),
        surrogate_(chosen_.known),
        allowance_(request.evaluations, request.seconds) {
    std::size_t known = 0;
    for (const PriorRun& run : request.priors) known += run.times.size() + run.failed.size();
    few_ = known < kFewKnown;
    random_.shuffle(to_draw_);
    draw_last_what_failed(request.priors);
    for (const std::vector<float>& times : chosen_.known.inherited)
      runs_.push_back(order_of([&](std::size_t at) { return times[at]; }));
  }

  std::string_view name() const override {
    return rest_ && outcome_.state == TransferOutcome::State::kDropped ? rest_->name() : "transfer";
  }
  const TransferOutcome* transfer() const override { return &outcome_; }

  std::optional<std::size_t> ask() override {
    if (outcome_.state == TransferOutcome::State::kTrying) {
      const Trial trial = next_of_trial();
      if (trial.index || trial.waits) return trial.index;
      keep("the space has no further config for a trial");
    }
    if (outcome_.state == TransferOutcome::State::kDropped) return ask_of(*rest_);
    for (const std::size_t way : turns_.order()) {
      const std::optional<std::size_t> index = way == kPraiseWay  ? praised()
                                               : way == kClimbWay ? ask_of(*climb_)
                                                                  : ask_of(*rest_);
      if (!index) continue;
      turns_.asked(*index, way);
      return index;
    }
    return std::nullopt;
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    const bool unasked = seen_.insert(index).second;
    if (rest_) rest_->tell(index, outcome);
    if (climb_) climb_->tell(index, outcome);
    std::optional<double> log_time;
    if (outcome.time_ms) log_time = std::log(*outcome.time_ms);
    const double usual_s = cost_s_ / static_cast<double>(std::max<std::size_t>(told_.size(), 1));
    const double cost = usual_s > 0 && outcome.cost_s > 0 ? outcome.cost_s / usual_s : 1;
    turns_.told(index, log_time && *log_time < best_ - kGainOfTransfer, cost);
    if (log_time) best_ = std::min(best_, *log_time);
    if (outcome_.state == TransferOutcome::State::kDropped) return;
    told_.emplace_back(index, outcome);
    told_.back().second.evaluation = nullptr;
    cost_s_ += outcome.cost_s;
    allowance_.tell(outcome);
    // That one config fails says little of the others: another takes its place.
    const bool failed_pilot = index == pilot_ && !log_time && outcome_.failed < kFailedPilots;
    if (failed_pilot) pilot_.reset();
    const bool proposed = proposed_.contains(index), drawn = drawn_.contains(index);
    if (index == pilot_) piloted_ = Rung{log_time};
    if (index == favourite_) favoured_ = Rung{log_time};
    if (!proposed) rungs_.add_rival(log_time);
    if (proposed && !log_time) ++outcome_.failed;
    if (const auto at = position(index); at && observed_.size() < kMaxModelled) {
      if (!proposed && !drawn) surrogate_.expect(*at);
      observed_.push_back({*at, log_time});
      surrogate_.observe(*at, on_scale(log_time));
      // A default that is known before the search is as good a judge as one that was drawn.
      const bool first = unasked && told_.size() == 1;
      const bool praised = proposed && !failed_pilot;
      if (praised) praised_.push_back(log_time);
      if (drawn || first || (praised && praised_.size() <= kJudgedPraised))
        judged_.push_back({*at, log_time, proposed});
    }
    learn();
  }

 private:
  struct Observed {
    std::size_t candidate;
    std::optional<double> log_time;
    bool praised = false;
  };
  // What runs say about every candidate, and its place among the configs of the space.
  struct Order {
    std::vector<float> said, sorted;
    // Those that are as slow count half.
    double share_below(std::size_t candidate) const {
      const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), said[candidate]);
      return static_cast<double>((low - sorted.begin()) + (high - sorted.begin())) /
             (2 * static_cast<double>(sorted.size()));
    }
  };
  struct Trial {
    std::optional<std::size_t> index;
    bool waits = false;  // for a result that decides what comes next
  };
  // A praised config with its result.
  struct Rung {
    std::optional<double> log_time;
  };
  bool passed(const std::optional<Rung>& rung) const {
    return rung && rungs_.passed(rung->log_time);
  }
  bool refuted(const std::optional<Rung>& rung) const {
    return rung && rungs_.refuted(rung->log_time);
  }
  std::optional<std::size_t> position(std::size_t index) const {
    const auto found = std::lower_bound(chosen_.indices.begin(), chosen_.indices.end(), index);
    if (found == chosen_.indices.end() || *found != index) return std::nullopt;
    return static_cast<std::size_t>(found - chosen_.indices.begin());
  }

  // How bad a bad one is says little.
  double on_scale(std::optional<double> log_time) const {
    if (!std::isfinite(best_)) return kSlowest;
    return std::min(log_time.value_or(best_ + kSlowest), best_ + kSlowest);
  }

  // Configs that failed elsewhere and worked nowhere are drawn last. They mostly fail here, too,
  // and everything is faster than they are: that is no test of what the runs say about speed.
  void draw_last_what_failed(const std::vector<PriorRun>& priors) {
    std::unordered_set<std::size_t> worked, failed;
    for (const PriorRun& run : priors) {
      for (const auto& [index, time_ms] : run.times) worked.insert(index);
      failed.insert(run.failed.begin(), run.failed.end());
    }
    std::stable_partition(to_draw_.begin(), to_draw_.end(), [&](std::size_t index) {
      return failed.contains(index) && !worked.contains(index);
    });
  }

  // Until a rung has passed, nothing speaks for the runs: only draws are made.
  Trial next_of_trial() {
    if (draws_first() && judged_.size() < kDrawnFirst) return one_of_the_first();
    if (!pilot_) return {pilot()};
    if (!passed(piloted_) && !forgiven()) return draw_or_wait();
    if (!favourite_) return {favourite_ = typical_best()};
    if (!passed(favoured_)) return draw_or_wait();
    if (draws())
      if (const std::optional<std::size_t> index = draw()) return {index};
    return {propose()};
  }

  // A budget for which one more slow config is little has their best asked for all the same.
  bool forgiven() const { return refuted(piloted_) && allowed() >= kEnough; }

  // Until the pilot is asked for. Runs of a few winners have no order that draws could speak for.
  bool draws_first() const {
    if (!proposed_.empty() || few_) return false;
    const bool knows_cost = rest_request_.seconds <= 0 || std::isfinite(best_);
    return !knows_cost || (allowed() > 0 && allowed() < kShort);
  }

  Trial one_of_the_first() {
    const std::size_t outstanding = seen_.size() - told_.size();
    if (judged_.size() + outstanding >= kDrawnFirst) return {std::nullopt, true};
    if (const std::optional<std::size_t> index = draw()) return {index};
    return {std::nullopt, outstanding > 0};
  }

  Trial draw_or_wait() {
    const bool outstanding = seen_.size() > told_.size();
    if (outstanding && drawn_.size() >= Rungs::kDecisive) return {std::nullopt, true};
    if (const std::optional<std::size_t> index = draw()) return {index};
    return {std::nullopt, outstanding};
  }

  bool draws() const {
    if (outcome_.belief < kDoubted) return true;
    const std::size_t asked = drawn_.size() + proposed_.size();
    return asked % (outcome_.belief < kTrusted ? kDrawEveryOpen : kDrawEvery) == 1;
  }

  std::optional<std::size_t> ask_of(Strategy& other) {
    while (const std::optional<std::size_t> index = other.ask())
      if (seen_.insert(*index).second) return index;
    return std::nullopt;
  }

  // What the runs praise, while that was a gain not long ago.
  std::optional<std::size_t> praised() {
    if (observed_.size() >= kMaxModelled) return std::nullopt;
    return propose();
  }

  std::optional<std::size_t> draw() {
    while (!to_draw_.empty()) {
      const std::size_t index = to_draw_.back();
      to_draw_.pop_back();
      if (!seen_.insert(index).second) continue;
      drawn_.insert(index);
      ++outcome_.drawn;
      surrogate_.expect(*position(index));
      return index;
    }
    return std::nullopt;
  }

  // Runs of a few winners have no order to choose a lesser config by.
  std::optional<std::size_t> pilot() {
    pilot_ = few_ ? propose() : typical_good();
    return pilot_;
  }

  // Of those that the runs rate as good, one whose neighbours they rate as good, too: one result
  // is easily an accident.
  std::optional<std::size_t> typical_good() {
    std::vector<std::size_t> order;  // by position
    for (const std::size_t index : to_draw_)
      if (!seen_.contains(index)) order.push_back(*position(index));
    if (order.empty()) return propose();
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(surrogate_.inherited(a), a) < std::pair(surrogate_.inherited(b), b);
    });
    const auto at = [&](double share) {
      return static_cast<std::size_t>(share * static_cast<double>(order.size()));
    };
    std::vector<std::size_t> good(order.begin() + static_cast<std::ptrdiff_t>(at(kPilotFrom)),
                                  order.begin() + static_cast<std::ptrdiff_t>(at(kPilotTo)) + 1);
    random_.shuffle(good);
    if (good.size() > kPilots) good.resize(kPilots);
    return propose(best_surrounded(good));
  }

  // Their best, for the same reason one of the first few whose neighbours they rate best.
  std::optional<std::size_t> typical_best() {
    if (few_) return propose();
    std::vector<std::size_t> order;  // by position
    for (std::size_t at = 0; at < chosen_.indices.size(); ++at)
      if (!seen_.contains(chosen_.indices[at])) order.push_back(at);
    if (order.empty()) return std::nullopt;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(surrogate_.mean(a), a) < std::pair(surrogate_.mean(b), b);
    });
    const auto share = static_cast<std::size_t>(kBestShare * static_cast<double>(order.size()));
    order.resize(std::min(order.size(), std::max(kLeastBest, share)));
    return propose(best_surrounded(order));
  }

  // REQUIRES: not empty.
  std::size_t best_surrounded(const std::vector<std::size_t>& candidates) const {
    std::size_t best = candidates.front();
    double least = std::numeric_limits<double>::infinity();
    for (const std::size_t candidate : candidates)
      if (const double said = said_around(candidate); said < least) best = candidate, least = said;
    return best;
  }

  // The mean time of a candidate's neighbours in the runs.
  double said_around(std::size_t candidate) const {
    double sum = 0;
    std::size_t count = 0;
    for (const std::size_t near : rest_request_.space.neighbours(chosen_.indices[candidate]))
      if (const auto at = position(near)) sum += surrogate_.inherited(*at), ++count;
    return count > 0 ? sum / static_cast<double>(count) : surrogate_.inherited(candidate);
  }

  std::optional<std::size_t> propose() {
    std::optional<std::size_t> best;
    double most = 0;
    for (std::size_t i = 0; i < chosen_.indices.size(); ++i) {
      if (best && std::isfinite(best_) && surrogate_.most_improvement(i, best_) <= most) continue;
      if (seen_.contains(chosen_.indices[i])) continue;
      const double value =
          std::isfinite(best_) ? surrogate_.expected_improvement(i, best_) : -surrogate_.mean(i);
      if (!best || value > most) most = value, best = i;
    }
    if (!best) return std::nullopt;
    return propose(*best);
  }

  std::size_t propose(std::size_t candidate) {
    const std::size_t index = chosen_.indices[candidate];
    seen_.insert(index);
    proposed_.insert(index);
    ++outcome_.proposed;
    surrogate_.expect(candidate);
    return index;
  }

  void learn() {
    const std::size_t count = observed_.size();
    // At 5, 10, 20, 40, 80: a refit conditions on everything again, and scales settle.
    if (count >= 5 && count <= kLastRefit && count % 5 == 0 && (count / 5 & (count / 5 - 1)) == 0) {
      for (const Observed& one : observed_)
        surrogate_.observe(one.candidate, on_scale(one.log_time));
      surrogate_.refit();
      outcome_.evidence = surrogate_.evidence();
    }
    if (outcome_.state == TransferOutcome::State::kTrying)
      judge();
    else if (outcome_.state == TransferOutcome::State::kKept)
      judge_again();
  }

  // A kept run has to go on being right.
  void judge_again() {
    if (observed_.size() <= kJudgedAgain && outcome_.evidence < kNoEvidence) return drop(kUnlikely);
    const std::vector<Judged> praise = judged_by_praise();
    const double belief = belief_in_runs(praise);
    if (belief < kDoubted) drop(praise_text(praise, belief));
  }

  double allowed() const { return allowance_.evaluations(); }

  // A share of the budget, within bounds.
  double share_of_budget(double share, double low, double high) const {
    const double all = allowed();
    return all > 0 ? std::clamp(share * all, low, high) : high;
  }

  // How many results end the first part of the trial.
  std::size_t trial() const {
    return static_cast<std::size_t>(share_of_budget(kTrialShare, kTrialLow, kTrialHigh));
  }

  void judge() {
    if (!std::isfinite(best_)) {
      if (refuted(piloted_)) drop("what they praise fails here");
      return;
    }
    for (std::size_t i = runs_.size(); runs_.size() > 1 && i-- > 0;) {
      if (belief_in_runs(judged_by(runs_[i])) >= kDropped) continue;
      runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(i));
      surrogate_.forget(i);
      ++outcome_.runs_dropped;
    }
    if (draws_first() && judged_.size() >= kDrawnFirst && contradicted())
      return drop("the order of the first random configs is not theirs");
    if (refuted(piloted_) && !forgiven())
      return drop("what they call good is slower here than random configs");
    if (refuted(favoured_)) return drop("their best is slower here than random configs");
    const std::vector<Judged> praise = judged_by_praise();
    outcome_.belief = belief_in_runs(praise);
    if (!passed(favoured_)) return;
    const std::string claim = praise_text(praise, outcome_.belief);
    const std::size_t count = observed_.size(), first = trial();
    const double least = count < first ? kDropped : count < 2 * first ? kDoubted : kBelievedBefore;
    if (outcome_.belief < least) return drop(claim);
    if (count < first) return;
    if (2 * outcome_.failed > count) return drop("most of what they praise fails here");
    if (outcome_.evidence < kNoEvidence) return drop(kUnlikely);
    if (count < 2 * first && outcome_.belief < kTrusted) return;
    keep(claim);
  }

  // Whether what was measured here makes each of the runs more likely useless than not.
  bool contradicted() const {
    return std::all_of(runs_.begin(), runs_.end(),
                       [&](const Order& run) { return belief_in_runs(judged_by(run)) < kDoubted; });
  }

  // What decided.
  static std::string praise_text(const std::vector<Judged>& praise, double belief) {
    return fmt::format(
        "what they praise is the faster in {:.0f} % of the comparisons with other configs here "
        "({:.0f} % likely to help)",
        100 * agreement_with_runs(praise), 100 * belief);
  }

  void keep(std::string why) {
    outcome_.state = TransferOutcome::State::kKept;
    outcome_.why = std::move(why);
    rest_request_.drawn = told_.size();
    const double handicap =
        std::floor(share_of_budget(kHandicapShare, kHandicapLow, kHandicapHigh));
    turns_ = Turns({0, handicap, handicap});
    climb_ = make_climb(rest_request_, [this](std::size_t index) {
      const std::optional<std::size_t> at = position(index);
      return at ? surrogate_.mean(*at) : std::numeric_limits<double>::infinity();
    });
    rest_ = make_cold_auto(rest_request_);
    tell_rest();
  }

  template <class Says>
  Order order_of(const Says& says) const {
    Order order;
    for (std::size_t at = 0; at < chosen_.indices.size(); ++at) order.said.push_back(says(at));
    for (const std::size_t index : chosen_.uniform)
      order.sorted.push_back(order.said[*position(index)]);
    std::sort(order.sorted.begin(), order.sorted.end());
    return order;
  }

  // By the place of a candidate in the order, for times of a few very slow ones say nothing of the
  // others.
  std::vector<Judged> judged_by(const Order& order) const {
    std::vector<Judged> judged;
    for (const Observed& one : judged_)
      judged.push_back({kUniform * (order.share_below(one.candidate) - 0.5), one.log_time});
    return judged;
  }

  // kPraise deviations between what they praise, of late, and the other configs.
  std::vector<Judged> judged_by_praise() const {
    std::vector<Judged> judged;
    for (const Observed& one : judged_)
      if (!one.praised) judged.push_back({0.0, one.log_time});
    const std::size_t late = praised_.size() - std::min(praised_.size(), kLatePraised);
    for (std::size_t i = late; i < praised_.size(); ++i) judged.push_back({-kPraise, praised_[i]});
    return judged;
  }

  // The search goes on cold, with all that was measured here.
  void drop(std::string why) {
    outcome_.state = TransferOutcome::State::kDropped;
    outcome_.why = std::move(why);
    climb_.reset();
    if (is_smooth(rest_request_)) rest_request_.priors.clear();
    rest_request_.drawn = told_.size();
    rest_ = make_cold_auto(rest_request_);
    tell_rest();
  }

  void tell_rest() {
    for (const auto& [index, outcome] : told_) {
      rest_->tell(index, outcome);
      if (climb_) climb_->tell(index, outcome);
    }
  }

  // Whether the cold search has a Gaussian process, unless there are features.
  static bool is_smooth(const StrategyRequest& request) {
    return request.evaluations > 0 && request.evaluations <= ModelOptions{}.few_evaluations;
  }

  StrategyRequest rest_request_;
  Random random_;
  TransferCandidates chosen_;
  std::vector<std::size_t> to_draw_;
  Surrogate surrogate_;
  std::vector<Order> runs_;                 // what each says
  std::unique_ptr<Strategy> rest_, climb_;  // after the trial; no climb from dropped runs
  Turns turns_{{}};
  std::optional<std::size_t> pilot_;
  std::optional<std::size_t> favourite_;    // their best
  std::optional<Rung> piloted_, favoured_;  // once their results are known
  Rungs rungs_;
  bool few_ = false;   // the runs have few configs
  double cost_s_ = 0;  // of the reported evaluations
  Allowance allowance_;
  TransferOutcome outcome_{.belief = kBelievedBefore};
  std::vector<std::optional<double>> praised_;  // log times of what runs praised, pilot included
  double best_ = std::numeric_limits<double>::infinity();  // log of ms
  std::unordered_set<std::size_t> seen_, proposed_, drawn_;
  std::vector<Observed> observed_, judged_;
  std::vector<std::pair<std::size_t, Outcome>> told_;
};

}  // namespace

std::unique_ptr<Strategy> make_transfer(const StrategyRequest& request) {
  return std::make_unique<Transfer>(request);
}

}  // namespace purlin::tune
