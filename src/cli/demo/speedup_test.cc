// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/speedup.h"

#include "cli/demo/steps.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::cli {
namespace {

// A machine whose load drifts by 10 % a process, which two separate runs would take for an effect.
class DriftingMachine {
 public:
  explicit DriftingMachine(double after_ms) : after_ms_(after_ms) {}
  Result<double> operator()(ProgramArm arm) {
    ++launches_;
    const double noise = 1 + 0.02 * (random_.uniform() - 0.5);
    return (arm == ProgramArm::kBefore ? 10 : after_ms_) * noise * std::pow(1.1, launches_);
  }
  int launches() const { return launches_; }

 private:
  double after_ms_;
  Random random_{7};
  int launches_ = 0;
};

TEST(Speedup, IntervalHoldsTheEffectUnderDrift) {
  DriftingMachine machine(5);
  Random random(3);
  const Result<Speedup> speedup = measure_speedup(8, random, std::ref(machine));
  ASSERT_TRUE(speedup.is_ok());
  EXPECT_EQ(machine.launches(), 16);
  EXPECT_EQ(speedup->pairs, 8);
  EXPECT_TRUE(speedup->resolved());
  EXPECT_LT(speedup->low, 2);
  EXPECT_GT(speedup->high, 2);
  EXPECT_GE(speedup->confidence, 0.95);
  EXPECT_NEAR(to_json(*speedup)["speedup"].as_double(), speedup->estimate, 0);
}

TEST(Speedup, DriftAloneIsNoDifference) {
  DriftingMachine machine(10);
  Random random(3);
  const Result<Speedup> speedup = measure_speedup(8, random, std::ref(machine));
  ASSERT_TRUE(speedup.is_ok());
  EXPECT_FALSE(speedup->resolved());
  EXPECT_EQ(speedup->effect_text(), "no difference shown");
}

TEST(Speedup, TextsNameDirectionAndInterval) {
  const Speedup faster{30, 20, 1.5, 1.4, 1.6, 0.961, 8}, slower{20, 30, 0.8, 0.7, 0.9, 0.5, 1};
  EXPECT_EQ(faster.effect_text(), "1.50x faster");
  EXPECT_EQ(faster.interval_text(), "96 % interval [1.40, 1.60], 8 pairs of processes");
  EXPECT_EQ(slower.effect_text(), "1.25x slower");
  EXPECT_EQ(slower.interval_text(), "50 % interval [0.70, 0.90], 1 pair of processes");
}

// On a busy machine 40 s may be the compilation of two configs.
TEST(DemoSearch, FewConfigsAreWorthMoreSearches) {
  EXPECT_TRUE(is_worth_another_search(1, 100, 600));
  EXPECT_FALSE(is_worth_another_search(5, 100, 40));
  EXPECT_TRUE(is_worth_another_search(5, 2, 40));
  EXPECT_FALSE(is_worth_another_search(5, 2, 640));
}

TEST(Speedup, FailsWithTheProcess) {
  Random random(1);
  EXPECT_EQ(
      measure_speedup(2, random,
                      [](ProgramArm) -> Result<double> { return error(Code::kTimeout, "late"); })
          .status()
          .code(),
      Code::kTimeout);
  EXPECT_EQ(
      measure_speedup(2, random, [](ProgramArm) -> Result<double> { return 0.0; }).status().code(),
      Code::kFailed);
}

}  // namespace
}  // namespace purlin::cli
