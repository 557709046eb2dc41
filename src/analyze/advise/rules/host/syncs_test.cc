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

// A test of all values before each read is there for the host alone: it goes as well.
TEST(Syncs, WhatMakesTheValueThatIsReadGoesAsWell) {
  const auto checked = [](const char* test, const char* decides) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 const auto small = [](Program& inner) {
                   inner.work(10'000).kernel(functor("Exp", "n=262144,inputs=1"), 2'000);
                 };
                 for (int i = 0; i < 8; ++i) {
                   program.within("aten::tanh", small).within(test, small).within(decides, small);
                   program.within("aten::item", [](Program& inner) {
                     inner.copy("d2h pinned", 1'000, 1).wait().work(2'000);
                   });
                 }
               })
        .advice();
  };
  const double with = share_of(checked("aten::isnan", "aten::any"), "remove_syncs").mid;
  const double without = share_of(checked("aten::mul", "aten::sum"), "remove_syncs").mid;
  EXPECT_GT(with, without + 0.3);
  // The loss may be needed: only its test goes.
  const double half = share_of(checked("aten::mul", "aten::all"), "remove_syncs").mid;
  EXPECT_GT(half, without + 0.1);
  EXPECT_LT(half, with - 0.1);
}

// A test that the framework makes of several ops is one test: aten::isfinite calls abs and mul.
TEST(Syncs, OpsOfATestGoWithIt) {
  const auto checked = [](const char* test) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 const auto small = [](Program& inner) {
                   inner.work(10'000).kernel(functor("Mul", "n=262144,inputs=2"), 2'000);
                 };
                 for (int i = 0; i < 8; ++i) {
                   program.within(test, [&](Program& inner) {
                     inner.within("aten::abs", small).within("aten::mul", small);
                   });
                   program.within("aten::all", small);
                   program.within("aten::item", [](Program& inner) {
                     inner.copy("d2h pinned", 1'000, 1).wait().work(2'000);
                   });
                 }
               })
        .advice();
  };
  EXPECT_GT(share_of(checked("aten::isfinite"), "remove_syncs").mid,
            share_of(checked("aten::tanh"), "remove_syncs").mid + 0.2);
}

// Values that were there at the first read need one read, also where the host uses each at once.
TEST(Syncs, ReadsInARowBecomeOne) {
  const auto read = [](int reads, bool works) {
    return Program()
        .steps(kSteps,
               [=](Program& program) {
                 for (int i = 0; i < reads; ++i) {
                   program.within("aten::item", [](Program& inner) {
                     inner.copy("d2h pinned", 2'000, 8).wait().work(5'000);
                   });
                   program.work(10'000);
                   if (works) program.kernel(functor("Exp", "n=262144,inputs=1"), 2'000);
                 }
                 program.kernel(functor("Exp", "n=4194304,inputs=1"), 100'000);
               })
        .advice();
  };
  const Advice row = read(32, false);
  EXPECT_TRUE(says(find(row, "remove_syncs"), "31 reads a step"));
  EXPECT_GT(share_of(row, "remove_syncs").low, 0.25);  // no decision and no dependency
  EXPECT_GT(share_of(row, "remove_syncs").high, 0.75);
  // Each value may follow from the work since the last read.
  const Advice apart = read(32, true);
  EXPECT_FALSE(says(find(apart, "remove_syncs"), "reads a step"));
  EXPECT_LE(share_of(apart, "remove_syncs").low, 0);
  EXPECT_FALSE(says(find(read(2, false), "remove_syncs"), "read a step"));
}

// Of a value that the host reads alone, the wait and the read go. What a test decides needs no
// kernels instead. An op that needs the value for its own size is replaced as a whole.
TEST(Syncs, WhatReadsTheValueSaysHowOpenTheEndsAre) {
  const auto read = [](const char* compares, const char* makes, const char* around) {
    return share_of(Program()
                        .steps(kSteps,
                               [=](Program& program) {
                                 const auto small = [](Program& inner) {
                                   inner.work(5'000).kernel(functor("Exp", "n=262144,inputs=1"),
                                                            20'000);
                                 };
                                 for (int i = 0; i < 8; ++i) {
                                   program.within("aten::tanh", small).within(compares, small);
                                   program.within(makes, small).within(around, [](Program& inner) {
                                     inner.within("aten::item", [](Program& innermost) {
                                       innermost.copy("d2h pinned", 1'000, 1).wait().work(2'000);
                                     });
                                   });
                                 }
                               })
                        .advice(),
                    "remove_syncs");
  };
  const Interval3 value = read("aten::mul", "aten::sum", "aten::item");
  const Interval3 sized = read("aten::mul", "aten::sum", "aten::repeat_interleave");
  EXPECT_NEAR(sized.high, value.high + 0.27, 0.01);
  EXPECT_NEAR(sized.mid, value.mid, 0.01);
  EXPECT_LT(value.low, -0.05);
  EXPECT_EQ(read("aten::mul", "aten::all", "aten::item").low, 0);
  // A comparison is a part of the test.
  const double compared = read("aten::lt", "aten::all", "aten::item").mid;
  EXPECT_GT(compared, read("aten::mul", "aten::all", "aten::item").mid + 0.1);
}

// The host waits for a short time, and then works on: the device idles because of that work, and
// would not if the host ran ahead.
TEST(Syncs, WorkAfterAWaitIsHiddenWithoutIt) {
  const auto advice_of = [](int reads) {
    return Program()
        .steps(kSteps,
               [reads](Program& program) {
                 for (int i = 0; i < 6; ++i) {
                   program.kernel(product("M=4096,N=4096,K=4096"), 180'000);
                   program.kernel(product("M=4096,N=4096,K=4096"), 180'000);
                   if (i < reads) program.copy("d2h pageable", 1'000, 4).wait().work(150'000);
                 }
               })
        .advice();
  };
  const Advice advice = advice_of(6);
  const Intervention* one = find(advice, "remove_syncs");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, 0.8 * 6 * 150 / (12 * 181 + 6 * 157), 0.08);
  EXPECT_TRUE(says(one, "without the waits, the host's work is hidden"));
  EXPECT_EQ(find(advice_of(0), "remove_syncs"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
