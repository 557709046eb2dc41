// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr std::int64_t kLong = 500'000;  // ns

// A step that makes an array on the host, sends it, and computes with it.
template <class Make>
Advice sending(Make make, const char* memory = "h2d pageable") {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               make(program);
               program.within("aten::to", [memory](Program& inner) {
                 inner.copy(memory, 20'000, 1 << 18).wait();
               });
               program.kernel(functor("Exp", "n=4194304,inputs=1"), 100'000);
             })
      .advice();
}

TEST(MadeOnHost, NumbersDrawnThereAreDrawnOnTheDevice) {
  const Advice advice = sending([](Program& program) {
    program.within("aten::randn", [](Program& inner) { inner.work(kLong); });
  });
  const Intervention* one = find(advice, "keep_on_device");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "draw the numbers"));
  EXPECT_FALSE(one->alternative);
  EXPECT_NEAR(one->saved_share.mid, 0.9 * 520 / 625, 0.1);
  EXPECT_EQ(find(advice, "feed_the_device"), nullptr);
}

TEST(MadeOnHost, OtherWorkIsDoneAheadOrOnTheDevice) {
  const Advice advice = sending([](Program& program) { program.work(kLong); });
  const Intervention* ahead = find(advice, "feed_the_device");
  ASSERT_NE(ahead, nullptr);
  EXPECT_NEAR(ahead->saved_share.mid, 0.75 * 500 / 625, 0.06);
  const Intervention* keep = find(advice, "keep_on_device");
  ASSERT_NE(keep, nullptr);
  EXPECT_TRUE(keep->alternative);
  // The rules about launches leave this time alone.
  EXPECT_LT(share_of(advice, "cut_host_work").mid, 0.1);
}

TEST(MadeOnHost, LittleWorkPinnedMemoryAndRoundTripsAreNone) {
  const auto none = [](const Advice& advice) {
    return find(advice, "feed_the_device") == nullptr && find(advice, "keep_on_device") == nullptr;
  };
  EXPECT_TRUE(none(sending([](Program& program) { program.work(10'000); })));
  EXPECT_TRUE(none(sending([](Program& program) { program.work(kLong); }, "h2d pinned")));
  const Advice fetched = sending(
      [](Program& program) { program.copy("d2h pageable", 1'000, 4096).wait().work(kLong); });
  EXPECT_EQ(find(fetched, "feed_the_device"), nullptr);  // the device's result is worked on
}

Advice values(int times) {
  return Program()
      .steps(kSteps,
             [times](Program& program) {
               for (int i = 0; i < 12; ++i) {
                 if (i < times)
                   program.op("aten::empty").within("aten::to", [](Program& inner) {
                     inner.work(10'000).copy("h2d pageable", 1'000, 4).wait();
                   });
                 program.work(10'000).kernel(functor("Exp", "n=65536,inputs=1"), 2'000);
               }
             })
      .advice();
}

TEST(MadeOnHost, SmallTensorsSentOneByOneAreMadeOnce) {
  const Advice advice = values(12);
  const Intervention* one = find(advice, "keep_on_device");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "12 copies a step"));
  EXPECT_GT(one->saved_share.mid, 0.25);
  EXPECT_LT(one->saved_share.mid, 0.7);
  EXPECT_EQ(find(values(2), "keep_on_device"), nullptr);
}

// A step that the host paces: to set arrays to zero takes its time as well.
TEST(MadeOnHost, FillsCountByTheirOpsWhereTheHostSetsThePace) {
  const auto filled = [](const char* op) {
    return Program()
        .steps(kSteps,
               [op](Program& program) {
                 for (int i = 0; i < 4; ++i) {
                   program.within(op, [](Program& inner) {
                     inner.work(20'000).kernel(functor("Fill", "n=65536,inputs=0"), 1'000);
                   });
                   program.work(40'000).kernel(functor("Exp", "n=65536,inputs=1"), 2'000);
                 }
               })
        .advice();
  };
  EXPECT_GT(share_of(filled("aten::zero_"), "remove_fills").mid, 0.1);
  EXPECT_EQ(find(filled("aten::full"), "remove_fills"), nullptr);
}

// Few launches: most of the host's time is the optimizer's own, which a fused one has too.
TEST(MadeOnHost, AnOptimizerOfFewLaunchesGainsLess) {
  const auto low = [](int launches) {
    return share_of(
               Program()
                   .steps(kSteps,
                          [launches](Program& program) {
                            const std::int64_t begin = program.host_now();
                            for (int i = 0; i < launches; ++i)
                              program.work(20'000).kernel(
                                  advised_row("multi_tensor_apply_kernel", "aten::_foreach_mul_",
                                              "n=65536,inputs=2,outputs=1", "f32"),
                                  2'000);
                            program.builder().range(RangeKind::kUser, "Optimizer.step#Adam.step",
                                                    begin, program.host_now() - begin);
                          })
                   .advice(),
               "fused_optimizer")
        .low;
  };
  EXPECT_LT(low(8), low(40) - 0.2);
  EXPECT_GT(low(40), 0.3);
}

// Arrays of 32 KiB, `count` in a step, each sent from memory that is not pinned.
Advice many_sent(int count, bool launches, std::uint64_t bytes = 32 << 10) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               for (int i = 0; i < count; ++i) {
                 program.within("aten::to", [=](Program& inner) {
                   inner.work(5'000).copy("h2d pageable", 3'000, bytes).wait().work(4'000);
                 });
                 if (launches) program.kernel(functor("Exp", "n=8192,inputs=1"), 3'000);
               }
               program.kernel(functor("Exp", "n=4194304,inputs=1"), 30'000);
             })
      .advice();
}

TEST(MadeOnHost, ArraysSentInARowAreSentInOneCopy) {
  const Advice advice = many_sent(64, false);
  const Intervention* one = find(advice, "cut_host_work");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Send the arrays in one copy");
  EXPECT_TRUE(says(one, "64 copies a step"));
  EXPECT_EQ(find(advice, "keep_on_device"), nullptr);  // each is another array
  EXPECT_GT(one->saved_share.low, 0);
  // Larger arrays take the host longer to gather.
  EXPECT_LT(share_of(many_sent(64, false, 60 << 10), "cut_host_work").mid,
            one->saved_share.mid - 0.1);
  for (const Advice& other : {many_sent(64, true), many_sent(4, false)})
    for (const Intervention& any : other.interventions)
      EXPECT_NE(any.title, "Send the arrays in one copy");
}

}  // namespace
}  // namespace purlin::analyze
