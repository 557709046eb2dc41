// SPDX-License-Identifier: Apache-2.0
// search_test.cc tests the search over commits. tests/suites/guard_bisect.sh tests bisections of a
// repository.
#include "guard/bisect/bisect.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::guard {
namespace {

// Commits with simulated times: number `culprit` and later ones take `factor` times as long.
class FakeArm : public Arm {
 public:
  FakeArm(double factor, double noise, Random& random)
      : factor_(factor), noise_(noise), random_(random) {}
  std::string label() const override { return "fake"; }
  Status prepare() override { return Status::ok(); }
  const std::vector<Item>& items() const override { return items_; }
  std::string fingerprint() const override { return std::to_string(factor_); }
  Json record() const override { return Json::object(); }
  Result<Readings> launch(const std::vector<Item>& wanted) override {
    Readings readings;
    for (const Item& item : wanted) {
      ItemReading reading;
      reading.item = item;
      const double time = 20000 * factor_ * std::exp(noise_ * random_.uniform(-1.73, 1.73));
      reading.process.reading = {time, time * 1.98, 0};
      readings.push_back(reading);
    }
    return readings;
  }

 private:
  double factor_, noise_;
  Random& random_;
  std::vector<Item> items_ = {{"gemm", "", ""}};
};

struct Made {
  Result<Bisection> found;
  int opened = 0;
};

Made find(int commits, int culprit, double factor, double noise, int untriable, Random& random) {
  int opened = 0;
  std::vector<std::string> names;
  for (int i = 0; i < commits; ++i) names.push_back(std::to_string(i));
  BisectSetup setup{.commits = names,
                    .open = [&](const std::string& commit) -> Result<Contender> {
                      ++opened;
                      const int number = std::stoi(commit);
                      if (number == untriable) return error(Code::kFailed, "it does not build");
                      Contender contender;
                      contender.arm = std::make_unique<FakeArm>(number >= culprit ? factor : 1.0,
                                                                noise, random);
                      return contender;
                    },
                    .close = {},
                    .design = {},
                    .thresholds = {},
                    .filter = "",
                    .pairs = 0,
                    .identity = "",
                    .journal = "",
                    .environment = {},
                    .options = {},
                    .say = {},
                    .random = random,
                    .clock = system_clock()};
  Result<Bisection> found = bisect(setup);
  return {std::move(found), opened};
}

TEST(Bisect, NamesAndConfirmsTheCulpritInNoise) {
  Random random(5);
  int right = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const int culprit = 1 + static_cast<int>(random.below(63));
    const Made made = find(64, culprit, 1.05, 0.016, -1, random);
    ASSERT_TRUE(made.found.is_ok()) << made.found.status().message();
    right += made.found->confirmed && made.found->bad == std::to_string(culprit);
  }
  EXPECT_GE(right, 19);
}

TEST(Bisect, ACommitThatCannotBeBuiltIsWalkedAround) {
  Random random(6);
  const Made made = find(64, 40, 1.1, 0.01, 31, random);
  ASSERT_TRUE(made.found.is_ok());
  EXPECT_EQ(made.found->bad, "40");
  EXPECT_EQ(made.found->steps.front().probe, Probe::kUntriable);
  EXPECT_EQ(made.found->steps.front().reason, "it does not build");
  // The culprit and an untriable neighbour cannot be separated.
  const Made range = find(64, 40, 1.1, 0.01, 39, random);
  ASSERT_TRUE(range.found.is_ok());
  EXPECT_EQ(range.found->candidates, (std::vector<std::string>{"39", "40"}));
  EXPECT_FALSE(range.found->confirmed);
}

TEST(Bisect, NoSlowdownNoCulprit) {
  Random random(7);
  const Made made = find(64, 40, 1.0, 0.01, -1, random);
  ASSERT_TRUE(made.found.is_ok());
  EXPECT_FALSE(made.found->nothing_to_find.empty());
  EXPECT_TRUE(made.found->steps.empty());
}

TEST(Bisect, PairsFollowTheNoise) {
  EXPECT_EQ(pairs_for_step(std::log(1.05), 0.005), 8);
  EXPECT_GT(pairs_for_step(std::log(1.05), 0.031), 15);
  EXPECT_EQ(pairs_for_step(std::log(1.02), 0.2), 40);
  EXPECT_EQ(pairs_for_step(std::log(1.02), std::nan("")), 40);
}

}  // namespace
}  // namespace purlin::guard
