// SPDX-License-Identifier: Apache-2.0
// The strategies that learn nothing: exhaustive and random.
#include "tune/search/strategy.h"

#include <unordered_set>

namespace purlin::tune {
namespace {

class Exhaustive : public Strategy {
 public:
  explicit Exhaustive(const StrategyRequest& request) : size_(request.space.size()) {}
  std::string_view name() const override { return "exhaustive"; }

  std::optional<std::size_t> ask() override {
    while (next_ < size_ && known_.contains(next_)) ++next_;
    return next_ < size_ ? std::optional(next_++) : std::nullopt;
  }
  void tell(std::size_t index, const Outcome&) override {
    if (index >= next_) known_.insert(index);
  }

 private:
  std::size_t size_, next_ = 0;
  std::unordered_set<std::size_t> known_;
};

class RandomSearch : public Strategy {
 public:
  explicit RandomSearch(const StrategyRequest& request)
      : shuffle_(request.space.size(), request.seed) {}
  std::string_view name() const override { return "random"; }

  std::optional<std::size_t> ask() override {
    std::optional<std::size_t> index = shuffle_.next();
    while (index && known_.contains(*index)) index = shuffle_.next();
    return index;
  }
  void tell(std::size_t index, const Outcome&) override { known_.insert(index); }

 private:
  Shuffle shuffle_;
  std::unordered_set<std::size_t> known_;
};

}  // namespace

std::unique_ptr<Strategy> make_exhaustive(const StrategyRequest& request) {
  return std::make_unique<Exhaustive>(request);
}

std::unique_ptr<Strategy> make_random(const StrategyRequest& request) {
  return std::make_unique<RandomSearch>(request);
}

}  // namespace purlin::tune
