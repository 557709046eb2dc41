// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Advice fetched(int times) {
  return Program()
      .steps(kSteps,
             [times](Program& program) {
               for (int i = 0; i < 8; ++i) {
                 program.kernel(functor("Exp", "n=4194304,inputs=1"), 100'000);
                 if (i < times) program.copy("d2h pageable", 100'000, 1 << 20).wait();
               }
             })
      .advice();
}

TEST(Syncs, ManyCopiesToTheHostAreWaits) {
  const Advice advice = fetched(8);
  const Intervention* one = find(advice, "remove_syncs");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "8 copies a step"));
  EXPECT_NEAR(one->saved_share.mid, 0.8 * 0.5, 0.08);
  EXPECT_EQ(one->saved_share.low, 0);  // the program may need them
  EXPECT_FALSE(says(find(fetched(1), "remove_syncs"), "copies to the host that it waits for"));
}

// Where the host decides by what it reads, kernels decide instead: that may take longer.
TEST(Syncs, ADecisionOfTheHostMayCostMoreOnTheDevice) {
  const auto read = [](std::uint64_t bytes) {
    return Program()
        .steps(kSteps,
               [bytes](Program& program) {
                 for (int i = 0; i < 8; ++i) {
                   program.kernel(functor("Exp", "n=4194304,inputs=1"), 30'000);
                   program.copy("d2h pageable", 2'000, bytes).wait().work(20'000);
                 }
               })
        .advice();
  };
  EXPECT_LT(share_of(read(4), "remove_syncs").low, -0.05);
  EXPECT_GE(share_of(read(4), "remove_syncs").low, -0.16);
  EXPECT_GE(share_of(read(1 << 20), "remove_syncs").low, 0);
}

}  // namespace
}  // namespace purlin::analyze
