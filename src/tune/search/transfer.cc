// SPDX-License-Identifier: Apache-2.0
// Transfer: asks first for what other runs praise, corrected by what each evaluation here shows,
// and hands over to the cold strategy with all that was told.
//
// A config is asked for when the surrogate expects the most improvement of it, so seeds are spread
// by themselves: what an evaluation says of one config it says of those like it. Now and then one
// is drawn at random. The runs are dropped when they mislead: when what they praise fails, is no
// faster than what was drawn, or when what was observed is likelier without them.
#include "tune/search/strategy.h"
#include "tune/search/surrogate.h"
#include "tune/search/transfer_candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace purlin::tune {
namespace {

// A pass of the surrogate grows with what it has seen; by now the cold strategy knows where to
// look.
constexpr std::size_t kMostModelled = 200;
constexpr std::size_t kLastRefit = 80;
constexpr std::size_t kDrawEvery = 8;      // one config in so many, until the runs are judged
constexpr std::size_t kFirstFailures = 5;  // so many seeds that fail before any works
constexpr std::size_t kJudged = 10, kJudgedLast = 40;  // told configs after which the runs are
constexpr double kNoEvidence = -2;                     // nats
constexpr double kChance = 0.5;                        // of the order of a pair

class Transfer : public Strategy {
 public:
  explicit Transfer(const StrategyRequest& request)
      : random_(request.seed),
        shuffle_(request.space.size(), random_.next()),
        chosen_(transfer_candidates(request.space, request.priors, random_)),
        surrogate_(chosen_.known) {
    StrategyRequest cold = request;
    cold.priors.clear();
    cold_ = make_cold_auto(cold);
  }

  std::string_view name() const override {
    return over_ && outcome_.state == TransferOutcome::State::kDropped ? cold_->name() : "transfer";
  }
  const TransferOutcome* transfer() const override { return &outcome_; }

  std::optional<std::size_t> ask() override {
    if (!over_) {
      ++asked_;
      const bool draws = outcome_.state == TransferOutcome::State::kTrying &&
                         (asked_ == 3 || asked_ == 6 || asked_ % kDrawEvery == 0);
      if (const auto index = draws ? draw() : propose()) return index;
      over_ = true;
    }
    while (const std::optional<std::size_t> index = cold_->ask())
      if (seen_.insert(*index).second) return index;
    return std::nullopt;
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    seen_.insert(index);
    cold_->tell(index, outcome);
    if (over_) return;
    std::optional<double> log_time;
    if (outcome.time_ms) log_time = std::log(*outcome.time_ms);
    if (log_time) best_ = std::min(best_, *log_time);
    const bool proposed = proposed_.contains(index), drawn = drawn_.contains(index);
    if (proposed && !log_time) ++outcome_.failed;
    if (const auto at = position(index)) {
      if (!proposed && !drawn) surrogate_.expect(*at);
      observed_.push_back({*at, log_time, drawn});
      surrogate_.observe(*at, on_scale(log_time));
    }
    learn();
  }

 private:
  struct Observed {
    std::size_t candidate;
    std::optional<double> log_time;
    bool drawn;
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

  std::optional<std::size_t> draw() {
    while (const std::optional<std::size_t> index = shuffle_.next()) {
      if (!seen_.insert(*index).second) continue;
      drawn_.insert(*index);
      ++outcome_.drawn;
      if (const auto at = position(*index)) surrogate_.expect(*at);
      return index;
    }
    return std::nullopt;
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
    const std::size_t index = chosen_.indices[*best];
    seen_.insert(index);
    proposed_.insert(index);
    ++outcome_.proposed;
    surrogate_.expect(*best);
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
    if (outcome_.state == TransferOutcome::State::kTrying) judge();
    if (count >= kMostModelled) over_ = true;
  }

  void judge() {
    if (!std::isfinite(best_)) {
      if (outcome_.failed >= kFirstFailures) drop("what they praise fails here");
      return;
    }
    if (drawn_.size() < 2) return;
    const double agreed = agreement();
    if (agreed == 0) return drop("whatever was drawn at random is faster than what they praise");
    if (observed_.size() < kJudged) return;
    if (2 * outcome_.failed > observed_.size()) return drop("most of what they praise fails here");
    if (agreed < kChance) return drop("their order is no better than chance here");
    if (outcome_.evidence < kNoEvidence)
      return drop("what was measured here is likelier without them");
    if (observed_.size() < kJudgedLast) return;
    outcome_.state = TransferOutcome::State::kKept;
    outcome_.why =
        fmt::format("their order is right for {:.0f} % of the pairs with a config drawn at random",
                    100 * agreed);
  }

  // Of the pairs with a config drawn at random, the share in whose order the runs are right: they
  // are fair judges, while all that was proposed is said to be fast.
  double agreement() const {
    double right = 0, pairs = 0;
    const auto time = [](const Observed& one) {
      return one.log_time.value_or(std::numeric_limits<double>::infinity());
    };
    for (std::size_t i = 0; i < observed_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const Observed &a = observed_[i], &b = observed_[j];
        if ((!a.drawn && !b.drawn) || time(a) == time(b)) continue;
        const double said = surrogate_.inherited(a.candidate) - surrogate_.inherited(b.candidate);
        right += said == 0 ? 0.5 : (said < 0) == (time(a) < time(b)) ? 1 : 0;
        ++pairs;
      }
    return pairs == 0 ? 1 : right / pairs;
  }

  void drop(std::string why) {
    outcome_.state = TransferOutcome::State::kDropped;
    outcome_.why = std::move(why);
    surrogate_.forget();
  }

  Random random_;
  Shuffle shuffle_;
  TransferCandidates chosen_;
  Surrogate surrogate_;
  std::unique_ptr<Strategy> cold_;
  TransferOutcome outcome_;
  bool over_ = false;  // the cold strategy is asked from now on
  std::size_t asked_ = 0;
  double best_ = std::numeric_limits<double>::infinity();  // log of ms
  std::unordered_set<std::size_t> seen_, proposed_, drawn_;
  std::vector<Observed> observed_;
};

}  // namespace

std::unique_ptr<Strategy> make_transfer(const StrategyRequest& request) {
  return std::make_unique<Transfer>(request);
}

}  // namespace purlin::tune
