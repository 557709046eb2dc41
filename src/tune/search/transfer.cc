// SPDX-License-Identifier: Apache-2.0
// Transfer: asks first for the configs that were fast in other runs, corrected by each evaluation
// here. At the end it hands over to another strategy, with all results. If the runs were believed,
// that strategy climbs from the fastest config; else it is the cold strategy.
//
// The next config is the one with the highest expected improvement under the surrogate. This
// spreads the seeds, because the evaluation of one config also informs about similar configs. The
// runs are on trial at first, so that misleading runs cause little loss (transfer_judge.h):
// - The first config is one that the runs rate as good, but not as the best. The best of wrong runs
//   may be the slowest config there is, and no faster config is known yet. This step is not needed
//   when a default was measured before.
// - Configs are also drawn at random. Every other config is a draw until it is clear whether the
//   runs help. All are draws when the runs are more likely to mislead. A cold start draws as well,
//   so these are no loss.
// - Each run is judged separately, and dropped separately.
#include "tune/search/strategy.h"
#include "tune/search/surrogate.h"
#include "tune/search/transfer_candidates.h"
#include "tune/search/transfer_judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

namespace purlin::tune {
namespace {

// A pass of the surrogate grows with what it has seen, and the fast region is known by now.
constexpr std::size_t kMaxModelled = 200;
constexpr std::size_t kLastRefit = 80;
constexpr double kPilot = 0.1;  // of the space, in the order of the runs
// One config in so many is drawn until the runs are judged: while they are doubted, and later.
constexpr std::size_t kDrawEveryOpen = 2, kDrawEvery = 8;
constexpr std::size_t kFirstFailures = 5;  // so many seeds that fail before any works
// Of what the runs praise, so many are judged: later ones are chosen by what was seen here.
constexpr std::size_t kJudgedPraised = 5;
constexpr double kDropped = 0.05, kDoubted = 0.5, kTrusted = 0.95;  // belief
// Numbers of reported configs. After the first, runs must not be doubted. After the second, they
// must have gained belief. After the third, they are not judged again.
constexpr std::size_t kJudged = 10, kJudgedLast = 20, kJudgedAgain = 40;
constexpr double kNoEvidence = -2;  // nats
constexpr const char* kUnlikely = "what was measured here is likelier without them";

class Transfer : public Strategy {
 public:
  explicit Transfer(const StrategyRequest& request)
      : rest_request_(request),
        random_(request.seed),
        chosen_(transfer_candidates(request.space, request.priors, random_)),
        to_draw_(chosen_.uniform),
        surrogate_(chosen_.known) {
    rest_request_.priors.clear();
    random_.shuffle(to_draw_);
    for (const std::vector<float>& times : chosen_.known.inherited)
      runs_.push_back({&times, scale_of([&](std::size_t i) { return times[i]; })});
  }

  std::string_view name() const override {
    return rest_ && outcome_.state == TransferOutcome::State::kDropped ? rest_->name() : "transfer";
  }
  const TransferOutcome* transfer() const override { return &outcome_; }

  std::optional<std::size_t> ask() override {
    if (!rest_) {
      if (const auto index = seen_.empty() ? pilot() : draws() ? draw() : propose()) return index;
      hand_over();
    }
    while (const std::optional<std::size_t> index = rest_->ask())
      if (seen_.insert(*index).second) return index;
    return std::nullopt;
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    const bool unasked = seen_.insert(index).second;
    if (rest_) return rest_->tell(index, outcome);
    told_.emplace_back(index, outcome);
    told_.back().second.evaluation = nullptr;
    std::optional<double> log_time;
    if (outcome.time_ms) log_time = std::log(*outcome.time_ms);
    if (log_time) best_ = std::min(best_, *log_time);
    const bool proposed = proposed_.contains(index), drawn = drawn_.contains(index);
    if (proposed && !log_time) ++outcome_.failed;
    if (const auto at = position(index)) {
      if (unasked) surrogate_.expect(*at);
      observed_.push_back({*at, log_time});
      surrogate_.observe(*at, on_scale(log_time));
      // A default that is known before the search is as good a judge as one that was drawn.
      const bool first = unasked && told_.size() == 1;
      if (drawn || first || (proposed && praised_++ < kJudgedPraised))
        judged_.push_back({*at, log_time});
    }
    learn();
  }

 private:
  struct Observed {
    std::size_t candidate;
    std::optional<double> log_time;
  };
  // What one run says, brought to a mean of 0 and a standard deviation of 1.
  struct Scale {
    double mean = 0, deviation = 1;
  };
  struct Run {
    const std::vector<float>* times;  // by candidate
    Scale scale;
  };

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

  bool draws() const {
    if (outcome_.state != TransferOutcome::State::kTrying) return false;
    const std::size_t every = outcome_.belief < kTrusted ? kDrawEveryOpen : kDrawEvery;
    return outcome_.belief < kDoubted || seen_.size() % every == 0;
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

  // The first config of a search that has no results yet.
  std::optional<std::size_t> pilot() {
    if (to_draw_.empty()) return propose();
    std::vector<std::size_t> order = to_draw_;
    const auto at = order.begin() + static_cast<std::ptrdiff_t>(kPilot * order.size());
    std::nth_element(order.begin(), at, order.end(), [&](std::size_t a, std::size_t b) {
      return surrogate_.inherited(*position(a)) < surrogate_.inherited(*position(b));
    });
    return propose(*position(*at));
  }

  std::optional<std::size_t> propose() {
    std::optional<std::size_t> best;
    double most = 0;
    for (std::size_t i = 0; i < chosen_.indices.size(); ++i) {
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
    else if (!rest_ && count <= kJudgedAgain && outcome_.evidence < kNoEvidence)
      drop(kUnlikely);
    if (!rest_ && count >= kMaxModelled) hand_over();
  }

  void judge() {
    if (!std::isfinite(best_)) {
      if (outcome_.failed >= kFirstFailures) drop("what they praise fails here");
      return;
    }
    for (std::size_t i = runs_.size(); runs_.size() > 1 && i-- > 0;) {
      const std::vector<float>& times = *runs_[i].times;
      const auto says = [&](std::size_t at) { return times[at]; };
      if (belief_in_runs(judged_by(says, runs_[i].scale)) >= kDropped) continue;
      runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(i));
      surrogate_.forget(i);
      ++outcome_.runs_dropped;
    }
    const auto says = [&](std::size_t at) { return surrogate_.inherited(at); };
    const std::vector<Judged> all = judged_by(says, scale_of(says));
    outcome_.belief = belief_in_runs(all);
    const std::size_t count = observed_.size();
    const std::string order =
        fmt::format("their order is right for {:.0f} % of the pairs of {} configs here",
                    100 * agreement_with_runs(all), all.size());
    const double least = count < kJudged       ? kDropped
                         : count < kJudgedLast ? kDoubted
                                               : kBelievedBefore;
    if (outcome_.belief < least) return drop(order);
    if (count < kJudged) return;
    if (2 * outcome_.failed > count) return drop("most of what they praise fails here");
    if (outcome_.evidence < kNoEvidence) return drop(kUnlikely);
    if (count < kJudgedLast && outcome_.belief < kTrusted) return;
    outcome_.state = TransferOutcome::State::kKept;
    outcome_.why = order;
  }

  // `says` of a candidate.
  template <class Says>
  Scale scale_of(const Says& says) const {
    Scale scale{0, 0};
    const double count = static_cast<double>(chosen_.indices.size());
    for (std::size_t i = 0; i < chosen_.indices.size(); ++i) scale.mean += says(i) / count;
    for (std::size_t i = 0; i < chosen_.indices.size(); ++i)
      scale.deviation += (says(i) - scale.mean) * (says(i) - scale.mean) / count;
    scale.deviation = std::sqrt(scale.deviation);
    if (!(scale.deviation > 0)) scale.deviation = 1;
    return scale;
  }

  template <class Says>
  std::vector<Judged> judged_by(const Says& says, const Scale& scale) const {
    std::vector<Judged> judged;
    for (const Observed& one : judged_)
      judged.push_back({(says(one.candidate) - scale.mean) / scale.deviation, one.log_time});
    return judged;
  }

  void drop(std::string why) {
    outcome_.state = TransferOutcome::State::kDropped;
    outcome_.why = std::move(why);
    hand_over();
  }

  // Runs that were believed have led to where the fast ones are: what is left lies near them, so
  // that climbing goes on. Of others the cold strategy knows as if it had drawn what was drawn.
  void hand_over() {
    const bool kept = outcome_.state == TransferOutcome::State::kKept;
    rest_request_.drawn = kept ? told_.size() : drawn_.size();
    rest_ = kept ? make_ils(rest_request_) : make_cold_auto(rest_request_);
    for (const auto& [index, outcome] : told_) rest_->tell(index, outcome);
  }

  StrategyRequest rest_request_;
  Random random_;
  TransferCandidates chosen_;
  std::vector<std::size_t> to_draw_;
  Surrogate surrogate_;
  std::vector<Run> runs_;
  std::unique_ptr<Strategy> rest_;  // asked from now on, once there is one
  TransferOutcome outcome_{.belief = kBelievedBefore};
  std::size_t praised_ = 0;  // configs that runs praised and that are judged, or would be
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
