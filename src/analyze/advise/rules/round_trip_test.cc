// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// A copy to the host, `host_ns` of its work on the array, and a small copy back.
Advice handled_by_host(std::int64_t host_ns, bool launches) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               program.kernel(product("M=64,N=32000,K=2048"), 60'000);
               program.copy("d2h", 700'000, 8 << 20);
               program.wait();
               if (launches) program.kernel(functor("Exp", "n=4194304,inputs=1"), 10'000);
               program.work(host_ns);
               program.copy("h2d", 2'000, 512);
               program.kernel(functor("Exp", "n=4194304,inputs=1"), 10'000);
             })
      .advice();
}

TEST(RoundTrip, WorkOfTheHostOnAnArrayMovesToTheDevice) {
  const Advice advice = handled_by_host(1'000'000, false);
  const Intervention* one = find(advice, "keep_on_device");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, (0.95 * 702 + 0.95 * 1000) / 1780, 0.03);
  EXPECT_EQ(find(handled_by_host(1'000'000, true), "keep_on_device"), nullptr);
  EXPECT_EQ(find(handled_by_host(10'000, false), "keep_on_device"), nullptr);
}

// A loop over inputs of one size: nothing says that the next input is the last output.
TEST(RoundTrip, AStreamOfInputsMayNeedItsCopies) {
  const Advice advice = Program()
                            .steps(kSteps,
                                   [](Program& program) {
                                     program.copy("h2d", 400'000, 16 << 20);
                                     program.kernel(functor("Exp", "n=4194304,inputs=1"), 100'000);
                                     program.copy("d2h", 400'000, 16 << 20);
                                   })
                            .advice();
  const Intervention* one = find(advice, "keep_on_device");
  ASSERT_NE(one, nullptr);
  EXPECT_LE(one->saved_share.low, 0);
  EXPECT_EQ(one->confidence, "C");
}

Advice sent(int times, std::uint64_t bytes) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               for (int i = 0; i < times; ++i) {
                 program.copy("h2d", 400'000, bytes);
                 program.kernel(product("M=2048,N=2048,K=2048"), 100'000);
               }
             })
      .advice();
}

TEST(RoundTrip, OneSizeSentAgainInEachStep) {
  const Advice advice = sent(6, 16 << 20);
  const Intervention* one = find(advice, "keep_on_device");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Send the array once, before the loop");
  EXPECT_NEAR(one->saved_share.mid, 0.75 * 0.8, 0.03);
  EXPECT_EQ(one->saved_share.low, 0);
  EXPECT_EQ(one->confidence, "D");
  EXPECT_EQ(find(sent(1, 16 << 20), "keep_on_device"), nullptr);  // the input of a step
  EXPECT_EQ(find(sent(6, 1024), "keep_on_device"), nullptr);
}

// A copy to the host, its work after it, and nothing comes back.
Advice taken_to_host(std::int64_t copy_ns, std::int64_t host_ns, std::uint64_t bytes = 8 << 20) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               program.kernel(product("M=4096,N=4096,K=4096"), 500'000);
               program.within("aten::to", [=](Program& inner) {
                 inner.copy("d2h pageable", copy_ns, bytes).wait();
               });
               program.work(host_ns);
             })
      .advice();
}

TEST(RoundTrip, WorkOfTheHostWithoutACopyBackMovesAsWell) {
  const Advice advice = taken_to_host(200'000, 1'000'000);
  const Intervention* one = find(advice, "keep_on_device");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "1 copy a step"));
  EXPECT_NEAR(one->saved_share.mid, 0.95 * 1200 / 1720, 0.04);
  EXPECT_GT(one->saved_share.low, 0.2);
  EXPECT_EQ(one->confidence, "C");
  // To free or keep the array takes less than the copy; what few bytes take is no work on them.
  EXPECT_EQ(find(taken_to_host(2'000'000, 300'000), "keep_on_device"), nullptr);
  EXPECT_EQ(find(taken_to_host(2'000, 1'000'000, 64), "keep_on_device"), nullptr);
}

TEST(RoundTrip, IsMovementOfData) {
  const Advice advice = handled_by_host(1'000'000, false);
  EXPECT_EQ(find(advice, "keep_on_device")->at, LossLevel::kDataMovement);
}

}  // namespace
}  // namespace purlin::analyze
