// SPDX-License-Identifier: Apache-2.0
#include "guard/matrix/attribution.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::guard {
namespace {

const std::vector<Factor> kThree = {{"build", "code", {"v1", "v2"}},
                                    {"toolkit", "compiler", {"12.8", "13.0"}},
                                    {"driver", "driver", {"570", "580"}}};

// All 2^k cells in `rounds` shared rounds; each round has a drift common to all its cells.
std::vector<CellTimes> full(const std::vector<double>& effects, int rounds, double noise,
                            double interaction = 0) {
  Random random(4);
  const std::size_t k = effects.size();
  std::vector<CellTimes> cells(std::size_t{1} << k);
  for (std::size_t corner = 0; corner < cells.size(); ++corner)
    for (std::size_t i = 0; i < k; ++i)
      cells[corner].cell.push_back(static_cast<int>(corner >> i & 1));
  for (int round = 0; round < rounds; ++round) {
    const double drift = 0.05 * random.uniform(-1, 1);
    for (std::size_t corner = 0; corner < cells.size(); ++corner) {
      double value = drift + noise * random.uniform(-1, 1);
      for (std::size_t i = 0; i < k; ++i)
        if ((corner >> i & 1) != 0) value += std::log(effects[i]);
      if ((corner & 3) == 3) value += interaction;
      cells[corner].times_ns.push_back(1e5 * std::exp(value));
    }
  }
  return cells;
}

TEST(Attribution, NamesTheFactorThatDidIt) {
  for (std::size_t culprit = 0; culprit < 3; ++culprit) {
    std::vector<double> effects = {1, 1, 1};
    effects[culprit] = 1.08;
    const Attribution found = attribute(kThree, full(effects, 12, 0.01), 0.02);
    EXPECT_EQ(found.cause, kThree[culprit].kind) << found.reason;
    EXPECT_TRUE(found.paired);
    EXPECT_NEAR(found.ratio, 1.08, 0.01);
    ASSERT_EQ(found.shares.size(), 3u);
    EXPECT_EQ(found.shares[0].factors, std::vector<std::size_t>{culprit});
    EXPECT_LT(found.shares[0].p_value, 0.001);
    EXPECT_NEAR(found.shares[1].ratio, 1, 0.006);
    EXPECT_NEAR(found.shares[0].ratio * found.shares[1].ratio * found.shares[2].ratio, found.ratio,
                0.01);
  }
}

TEST(Attribution, TwoFactorsShareAndNothingIsNothing) {
  const Attribution both = attribute(kThree, full({1.05, 1.0, 1.05}, 12, 0.005), 0.02);
  EXPECT_EQ(both.cause, "mixed");
  EXPECT_NE(both.reason.find("several factors carry it"), std::string::npos) << both.reason;
  const Attribution none = attribute(kThree, full({1, 1, 1}, 12, 0.01), 0.02);
  EXPECT_EQ(none.cause, "");
  EXPECT_NE(none.reason.find("no change"), std::string::npos);
  // A gain is attributed like a loss.
  EXPECT_EQ(attribute(kThree, full({0.9, 1, 1}, 12, 0.01), 0.02).cause, "code");
}

TEST(Attribution, ASlowdownThatNeedsTwoFactorsIsSaidToInteract) {
  const Attribution found = attribute(kThree, full({1, 1, 1}, 12, 0.004, std::log(1.2)), 0.02);
  EXPECT_EQ(found.cause, "mixed");
  EXPECT_NEAR(found.interaction, 1.2, 0.02);
  EXPECT_NEAR(found.shares[0].ratio, std::sqrt(1.2), 0.02);
  EXPECT_NE(found.reason.find("act on one another"), std::string::npos) << found.reason;
}

TEST(Attribution, FactorsThatNoCellSeparatesAreNamedTogether) {
  std::vector<CellTimes> all = full({1, 1, 1.1}, 12, 0.005), cells;
  // The driver was only ever changed together with the toolkit.
  for (const CellTimes& cell : all)
    if (cell.cell[1] == cell.cell[2]) cells.push_back(cell);
  const Attribution found = attribute(kThree, cells, 0.02);
  ASSERT_EQ(found.shares.size(), 2u);
  EXPECT_EQ(found.shares[0].factors, (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(found.cause, "mixed");
  EXPECT_NE(found.reason.find("toolkit or driver did it, and no measured cell separates them"),
            std::string::npos)
      << found.reason;
}

TEST(Attribution, CellsRecordedElsewhereAreComparedByMediansAndSaidToBe) {
  std::vector<CellTimes> cells = full({1, 1, 1.1}, 12, 0.005);
  for (CellTimes& cell : cells) cell.elsewhere = cell.cell[2] == 1;
  const Attribution found = attribute(kThree, cells, 0.02);
  EXPECT_FALSE(found.paired);
  EXPECT_EQ(found.cause, "driver");
  EXPECT_NE(found.reason.find("proves less"), std::string::npos);
}

TEST(Attribution, TheEndsMustBeMeasuredAndMiddleLevelsAreNoCorners) {
  const std::vector<Factor> factors = {{"toolkit", "compiler", {"12.6", "12.8", "13.0"}},
                                       {"gpu", "hardware", {"H200"}}};
  std::vector<CellTimes> cells = {{{0, 0}, std::vector<double>(8, 100), false},
                                  {{1, 0}, std::vector<double>(8, 500), false}};
  EXPECT_NE(attribute(factors, cells, 0.02).reason.find("all last levels was not measured"),
            std::string::npos);
  cells.push_back({{2, 0}, std::vector<double>(8, 110), false});
  const Attribution found = attribute(factors, cells, 0.02);
  EXPECT_NEAR(found.ratio, 1.1, 1e-9);
  EXPECT_EQ(found.cause, "compiler");
  EXPECT_EQ(attribute(factors, {}, 0.02).shares.size(), 0u);
}

}  // namespace
}  // namespace purlin::guard
