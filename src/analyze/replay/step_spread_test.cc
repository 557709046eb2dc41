// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/step_spread.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// Ends of steps of these lengths, as times of nodes 0, 1, ….
std::vector<double> ends(const std::vector<double>& lengths) {
  std::vector<double> out = {0};
  for (const double length : lengths) out.push_back(out.back() + length);
  return out;
}
std::vector<std::uint32_t> nodes(std::size_t count) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < count; ++i) out.push_back(i);
  return out;
}

TEST(StepSpread, EqualStepsAreCertain) {
  const StepSpread spread = spread_over_steps(nodes(11), ends(std::vector<double>(10, 100)),
                                              ends(std::vector<double>(10, 60)));
  EXPECT_NEAR(spread.below, 0, 1e-12);
  EXPECT_NEAR(spread.above, 0, 1e-12);
}

// Ten steps that save 0 or all by turns: the mean of ten draws has a standard deviation of 0.16.
TEST(StepSpread, UnequalSavingsWiden) {
  std::vector<double> after;
  for (int i = 0; i < 10; ++i) after.push_back(i % 2 == 0 ? 100 : 0);
  const StepSpread spread =
      spread_over_steps(nodes(11), ends(std::vector<double>(10, 100)), ends(after));
  EXPECT_NEAR(spread.below, 0.2, 0.07);
  EXPECT_NEAR(spread.above, 0.2, 0.07);
}

TEST(StepSpread, AFewStepsTellNothing) {
  const StepSpread spread = spread_over_steps(nodes(3), ends({100, 200}), ends({100, 0}));
  EXPECT_EQ(spread.below, 0);
  EXPECT_EQ(spread.above, 0);
}

}  // namespace
}  // namespace purlin::analyze
