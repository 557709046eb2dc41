// SPDX-License-Identifier: Apache-2.0
#include "tune/search/seeded.h"

#include <unordered_set>

namespace purlin::tune {
namespace {

class Seeded : public Strategy {
 public:
  Seeded(std::unique_ptr<Strategy> inner, std::vector<std::size_t> seeds)
      : inner_(std::move(inner)), seeds_(std::move(seeds)) {}

  std::string_view name() const override { return inner_->name(); }
  const TransferOutcome* transfer() const override { return inner_->transfer(); }

  double count_within(std::size_t index) const override { return inner_->count_within(index); }

  std::optional<std::size_t> ask() override {
    while (next_ < seeds_.size()) {
      const std::size_t seed = seeds_[next_++];
      if (seen_.insert(seed).second) return seed;
    }
    // The inner strategy got the results of seeds that it did not ask for. It may still ask for
    // them.
    while (const std::optional<std::size_t> index = inner_->ask())
      if (seen_.insert(*index).second) return index;
    return std::nullopt;
  }

  void tell(std::size_t index, const Outcome& outcome) override {
    seen_.insert(index);
    inner_->tell(index, outcome);
  }

 private:
  std::unique_ptr<Strategy> inner_;
  std::vector<std::size_t> seeds_;
  std::size_t next_ = 0;
  std::unordered_set<std::size_t> seen_;
};

}  // namespace

std::unique_ptr<Strategy> make_seeded(std::unique_ptr<Strategy> inner,
                                      std::vector<std::size_t> seeds) {
  if (seeds.empty()) return inner;
  return std::make_unique<Seeded>(std::move(inner), std::move(seeds));
}

}  // namespace purlin::tune
