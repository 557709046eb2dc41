// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// An iteration of a solver, then its error, which the host reads each time.
Advice iterated(const char* error, const char* extent, int rounds = 10) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < rounds; ++i) {
                 for (const char* what : {"Mul", "Div"})
                   program.work(6'000).kernel(functor(what, "n=1048576,inputs=2"), 3'000);
                 program.work(6'000).kernel(functor("sub", "n=2048,inputs=2"), 2'000);
                 program.work(6'000).kernel(
                     advised_row("void reduce_kernel<sum>()", error, extent, "f32"), 2'000);
                 program.copy("d2h", 2'000, 4);
                 program.waiting_op("aten::item");
                 program.wait();
               }
             })
      .advice();
}

TEST(RemoveSyncs, ATestInEachIterationTakesItsKernelsAlong) {
  const Advice advice = iterated("aten::sum", "n=2048,out=1");
  const Intervention* one = find(advice, "remove_syncs");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "after a reduction of errors to one value: 10 reads a step"));
  // The values that are read are many, or the array is another one: only the waits go.
  for (const char* extent : {"n=2048,out=16", "n=4096,out=1"}) {
    const Advice other = iterated("aten::sum", extent);
    EXPECT_FALSE(says(find(other, "remove_syncs"), "after a reduction of errors")) << extent;
    EXPECT_GT(one->saved_share.mid, share_of(other, "remove_syncs").mid + 0.1) << extent;
  }
  EXPECT_FALSE(
      says(find(iterated("aten::sum", "n=2048,out=1", 3), "remove_syncs"), "reduction of errors"));
}

Advice pinned(const char* op, std::int64_t ns) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.within(op, [&](Program& inner) { inner.work(ns); });
               program.copy("h2d pinned", 200'000, 8 << 20);
               program.kernel(functor("Mul", "n=1048576,inputs=2"), 100'000);
             })
      .advice();
}

TEST(PinMemory, AnArrayThatIsPinnedInEachStep) {
  const Advice advice = pinned("aten::pin_memory", 1'500'000);
  const Intervention* one = find(advice, "pin_memory");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Pin one buffer before the loop, not each batch");
  EXPECT_NEAR(one->saved_share.mid, 0.9 * 1.5 / 1.8, 0.05);
  EXPECT_EQ(find(advice, "slow_op"), nullptr);
  EXPECT_EQ(find(pinned("aten::view", 1'500'000), "pin_memory"), nullptr);
  EXPECT_EQ(find(pinned("aten::pin_memory", 5'000), "pin_memory"), nullptr);
}

// The host reads a result; then it makes what it sends, in the same step or in the next one.
Advice drawn(bool before_the_border) {
  Program program;
  const auto draw = [](Program& one) {
    one.work(900'000);
    one.within("aten::to", [](Program& inner) { inner.copy("h2d pageable", 3'000, 32'768); });
  };
  program.steps(kSteps, [&](Program& one) {
    if (!before_the_border) draw(one);
    for (int i = 0; i < 5; ++i) one.kernel(functor("Mul", "n=1048576,inputs=2"), 100'000);
    one.copy("d2h pageable", 3'000, 16'384);
    if (before_the_border) draw(one);
  });
  return program.advice();
}

TEST(KeepOnDevice, WhatTheNextStepSendsIsMadeByTheHost) {
  const Advice advice = drawn(false);
  const Intervention* one = find(advice, "keep_on_device");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Make the array on the device, or once");
  EXPECT_NEAR(one->saved_share.mid, 0.9 * 0.9 / 1.41, 0.06);
  // Within a step, it works on what it has read.
  const Advice same = drawn(true);
  const Intervention* other = find(same, "keep_on_device");
  EXPECT_TRUE(other == nullptr || other->title != one->title);
}

}  // namespace
}  // namespace purlin::analyze
