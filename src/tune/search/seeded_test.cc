// SPDX-License-Identifier: Apache-2.0
#include "tune/search/seeded.h"

#include <gtest/gtest.h>

namespace purlin::tune {
namespace {

// Asks for 0, 1, 2, … and ignores all results.
class CountingStrategy : public Strategy {
 public:
  std::string_view name() const override { return "counting"; }
  std::optional<std::size_t> ask() override {
    return next_ < 6 ? std::optional<std::size_t>(next_++) : std::nullopt;
  }
  void tell(std::size_t index, const Outcome&) override { told.push_back(index); }
  double count_within(std::size_t index) const override { return static_cast<double>(index); }
  std::vector<std::size_t> told;

 private:
  std::size_t next_ = 0;
};

TEST(Seeded, SeedsComeFirstAndNothingTwice) {
  auto inner = std::make_unique<CountingStrategy>();
  CountingStrategy& counting = *inner;
  const auto strategy = make_seeded(std::move(inner), {4, 2, 4, 0});
  EXPECT_EQ(strategy->name(), "counting");
  EXPECT_EQ(strategy->count_within(5), 5);
  strategy->tell(2, {});  // the default, measured before anything was asked
  std::vector<std::size_t> asked;
  while (const auto index = strategy->ask()) {
    asked.push_back(*index);
    strategy->tell(*index, {});
  }
  EXPECT_EQ(asked, (std::vector<std::size_t>{4, 0, 1, 3, 5}));
  EXPECT_EQ(counting.told, (std::vector<std::size_t>{2, 4, 0, 1, 3, 5}));
}

}  // namespace
}  // namespace purlin::tune
