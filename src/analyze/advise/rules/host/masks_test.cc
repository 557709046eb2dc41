// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::analyze {
namespace {

struct MaskedLoop {
  int rounds = 32;
  const char* op = "aten::nonzero";  // in which the host waits
  double kernel_ns = 2'000;          // of the work on what is chosen
  int pauses = 0;                    // long ones of the host, between the rounds
};

// Each round chooses another number of elements, and works on them.
Advice chosen(const MaskedLoop& loop) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < loop.rounds; ++i) {
                 const std::string size = "n=" + std::to_string(1000 + 7 * i) + ",inputs=1";
                 program.within(loop.op, [](Program& inner) {
                   inner.kernel(functor("CompareEq", "n=262144,inputs=1"), 2'000);
                   inner.copy("d2h pinned", 1'000, 8).wait();
                 });
                 program.work(10'000).kernel(functor("Exp", size), loop.kernel_ns);
                 program.work(10'000).kernel(functor("Mul", size), loop.kernel_ns);
                 if (loop.pauses > 0 && i % (loop.rounds / loop.pauses) == 0)
                   program.work(2'000'000);
               }
             })
      .advice();
}

const char* const kSaid = "loops that choose elements by a mask";

TEST(Masks, ALoopOverMasksBecomesOneOpOverAllElements) {
  const Advice advice = chosen({});
  const Intervention* one = find(advice, "remove_syncs");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, std::string(kSaid) + ": 32 masks a step"));
  EXPECT_NEAR(one->saved_share.mid, 0.8, 0.1);
  EXPECT_GT(one->saved_share.low, 0.35);
  for (const std::string& assumed : one->assumptions)
    EXPECT_EQ(assumed.find("a loss"), std::string::npos) << assumed;
  EXPECT_NE(one->how.front().find("tensor[mask]"), std::string::npos);
  EXPECT_NEAR(one->saved_share.high, 1, 0.03);
}

TEST(Masks, AnotherOpThatWaitsIsNone) {
  const Interval3 read = share_of(chosen({.op = "aten::item"}), "remove_syncs");
  EXPECT_FALSE(says(find(chosen({.op = "aten::item"}), "remove_syncs"), kSaid));
  EXPECT_LT(read.mid, share_of(chosen({}), "remove_syncs").mid - 0.2);
}

TEST(Masks, FewMasksAreNoLoop) {
  EXPECT_FALSE(says(find(chosen({.rounds = 15}), "remove_syncs"), kSaid));
  EXPECT_TRUE(says(find(chosen({.rounds = 16}), "remove_syncs"), kSaid));
}

// Eight runs of eight masks, with long work of the host between them.
TEST(Masks, MasksFarApartAreNoLoop) {
  EXPECT_FALSE(says(find(chosen({.rounds = 64, .pauses = 8}), "remove_syncs"), kSaid));
}

// All elements take the device as long as the chosen ones of all rounds.
TEST(Masks, LongKernelsStay) {
  EXPECT_LT(share_of(chosen({.kernel_ns = 400'000}), "remove_syncs").mid, 0.1);
}

}  // namespace
}  // namespace purlin::analyze
