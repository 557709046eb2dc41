// SPDX-License-Identifier: Apache-2.0
#include "tune/search/transfer/turns.h"

#include <gtest/gtest.h>

namespace purlin::tune {
namespace {

using Ways = std::vector<std::size_t>;

TEST(Turns, BeginWithTheHandicaps) { EXPECT_EQ(Turns({3, 0, 2}).order(), (Ways{1, 2, 0})); }

TEST(Turns, AWayThatGainsGoesOnAndOneThatDoesNotYields) {
  Turns turns({0, 2});
  turns.asked(7, 0);
  turns.asked(8, 0);
  turns.told(7, false, 1);
  turns.told(8, true, 1);
  EXPECT_EQ(turns.order(), (Ways{0, 1}));
  for (std::size_t index = 10; index < 13; ++index) {
    turns.asked(index, 0);
    turns.told(index, false, 1);
  }
  EXPECT_EQ(turns.order(), (Ways{1, 0}));
}

TEST(Turns, AWayThatAsksForSlowConfigsGetsFewer) {
  Turns turns({0, 2});
  turns.asked(7, 0);
  EXPECT_EQ(turns.order(), (Ways{0, 1}));
  turns.told(7, false, 3);
  EXPECT_EQ(turns.order(), (Ways{1, 0}));
}

TEST(Turns, AResultThatNoWayAskedForChangesNothing) {
  Turns turns({1, 0});
  turns.told(5, true, 1);
  EXPECT_EQ(turns.order(), (Ways{1, 0}));
}

}  // namespace
}  // namespace purlin::tune
