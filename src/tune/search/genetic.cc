// SPDX-License-Identifier: Apache-2.0
// Genetic algorithm, steady state: each child takes about half its values from each of two parents,
// the better of two drawn from the population each, and mutates now and then. It replaces the worst
// of the population when it is faster. A cross that breaks a constraint is left out value by value,
// so children are always valid.
#include "tune/search/ledger.h"
#include "tune/search/strategy.h"

#include <algorithm>
#include <vector>

namespace purlin::tune {
namespace {

constexpr std::size_t kGenePopulation = 20;
constexpr double kGeneMutation = 0.3;

class Genetic : public Strategy {
 public:
  explicit Genetic(const StrategyRequest& request)
      : random_(request.seed), ledger_(request.space, random_) {}
  std::string_view name() const override { return "genetic"; }

  std::optional<std::size_t> ask() override {
    if (++asked_ <= kGenePopulation || population_.size() < 2) return ledger_.draw();
    const std::size_t mother = parent(), father = parent();
    std::size_t child = ledger_.approach(mother, ledger_.values(father), 0.5);
    if (random_.uniform() < kGeneMutation) child = ledger_.step(child);
    return ledger_.take(child) ? std::optional(child) : ledger_.draw_near(child);
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    ledger_.take(index);
    if (!outcome.time_ms) return;
    const Member member{*outcome.time_ms, index};
    population_.insert(std::upper_bound(population_.begin(), population_.end(), member), member);
    if (population_.size() > kGenePopulation) population_.pop_back();
  }

 private:
  using Member = std::pair<double, std::size_t>;  // time, index

  // The population is sorted, so the better of two is the one before.
  std::size_t parent() {
    const std::uint64_t one = random_.below(population_.size());
    return population_[std::min(one, random_.below(population_.size()))].second;
  }

  Random random_;
  Ledger ledger_;
  std::size_t asked_ = 0;
  std::vector<Member> population_;  // fastest first
};

}  // namespace

std::unique_ptr<Strategy> make_genetic(const StrategyRequest& request) {
  return std::make_unique<Genetic>(request);
}

}  // namespace purlin::tune
