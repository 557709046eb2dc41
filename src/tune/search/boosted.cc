// SPDX-License-Identifier: Apache-2.0
// Evolutionary exploration under a cost model, the way TVM searches with XGBoost.
//
// The search begins with some random configs and goes on in rounds. In each round, boosted trees
// are fitted to the observed configs. Then a population evolves for a few generations under the
// predictions of the trees, which needs no measurement. Half of the population are the fastest
// measured configs. The best configs of all generations become the next batch, together with a few
// random configs. Unlike `model` it never predicts a whole space, so a step takes the same time in
// a space of any size.
#include "tune/model/ensemble.h"
#include "tune/search/ledger.h"
#include "tune/search/strategy.h"

#include <algorithm>
#include <deque>
#include <numeric>

namespace purlin::tune {
namespace {

constexpr double kFirstShare = 0.1, kFirstLow = 5, kFirstHigh = 24;  // as `model`
constexpr std::size_t kFirst = 16;  // where the budget says nothing
constexpr std::size_t kPopulation = 128, kGenerations = 5, kBatch = 8;
constexpr double kMutation = 0.85;  // the other children cross two parents
constexpr double kRandom = 0.05;    // of a batch

class Boosted : public Strategy {
 public:
  Boosted(const StrategyRequest& request, FitRegressor fit)
      : space_(request.space),
        random_(request.seed),
        ledger_(space_, random_),
        ensemble_(space_, std::move(fit)) {
    if (request.evaluations > 0)
      first_ = static_cast<std::size_t>(std::clamp(
          kFirstShare * static_cast<double>(request.evaluations), kFirstLow, kFirstHigh));
  }
  std::string_view name() const override { return "boosted"; }

  std::optional<std::size_t> ask() override {
    if (drawn_ < first_ || ensemble_.worked() < 2) {
      ++drawn_;
      return ledger_.draw();
    }
    if (queue_.empty()) propose();
    while (!queue_.empty()) {
      const std::size_t index = queue_.front();
      queue_.pop_front();
      if (ledger_.take(index)) return index;
    }
    return ledger_.draw();
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    ledger_.take(index);
    ensemble_.add(index, outcome.time_ms);
    if (!outcome.time_ms) return;
    const Member member{static_cast<float>(*outcome.time_ms), index};
    fastest_.insert(std::upper_bound(fastest_.begin(), fastest_.end(), member), member);
    if (fastest_.size() > kPopulation / 2) fastest_.pop_back();
  }

 private:
  using Member = std::pair<float, std::size_t>;  // a time or its substitute, index

  void propose() {
    if (ensemble_.observations() != fitted_) {
      fitted_ = ensemble_.observations();
      ensemble_.fit(random_);
    }
    std::vector<std::size_t> population;
    for (const Member& member : fastest_) population.push_back(member.second);
    const auto drawn = space_.sample(kPopulation - population.size(), random_);
    population.insert(population.end(), drawn.begin(), drawn.end());
    std::vector<Member> met;
    for (std::size_t generation = 0; generation < kGenerations; ++generation) {
      std::vector<Member> members = predicted(population);
      met.insert(met.end(), members.begin(), members.end());
      std::sort(members.begin(), members.end());
      population.clear();
      while (population.size() < kPopulation) population.push_back(child_of(members));
    }
    const std::vector<Member> last = predicted(population);
    met.insert(met.end(), last.begin(), last.end());
    std::sort(met.begin(), met.end());
    met.erase(std::unique(met.begin(), met.end()), met.end());
    for (const auto& [value, index] : met) {
      if (queue_.size() == kBatch) break;
      if (!ledger_.knows(index)) queue_.push_back(index);
    }
    for (std::size_t& index : queue_)
      if (random_.uniform() < kRandom) index = space_.sample(1, random_).front();
  }

  std::vector<Member> predicted(const std::vector<std::size_t>& indices) const {
    const auto expected = ensemble_.predict(ensemble_.encode(indices));
    std::vector<Member> members;
    for (std::size_t i = 0; i < indices.size(); ++i)
      members.push_back(
          {std::accumulate(expected[i].begin(), expected[i].end(), 0.0F), indices[i]});
    return members;
  }

  std::size_t child_of(const std::vector<Member>& sorted) {
    const std::size_t parent = picked_of(sorted);
    if (random_.uniform() < kMutation) return ledger_.step(parent);
    return ledger_.approach(parent, ledger_.values(picked_of(sorted)), 0.5);
  }
  // The better of two.
  std::size_t picked_of(const std::vector<Member>& sorted) {
    const std::uint64_t one = random_.below(sorted.size());
    return sorted[std::min(one, random_.below(sorted.size()))].second;
  }

  const Space& space_;
  Random random_;
  Ledger ledger_;
  Ensemble ensemble_;
  std::size_t first_ = kFirst;
  std::size_t drawn_ = 0;
  std::size_t fitted_ = 0;  // observations at the last fit
  std::deque<std::size_t> queue_;
  std::vector<Member> fastest_;  // that were measured, by time
};

}  // namespace

std::unique_ptr<Strategy> make_boosted_search(const StrategyRequest& request, FitRegressor fit) {
  return std::make_unique<Boosted>(request, std::move(fit));
}

std::unique_ptr<Strategy> make_boosted(const StrategyRequest& request) {
  return make_boosted_search(request, fit_boosted_trees());
}

}  // namespace purlin::tune
