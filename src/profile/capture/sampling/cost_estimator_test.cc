// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/cost_estimator.h"

#include <gtest/gtest.h>

namespace purlin::profile::capture {
namespace {

constexpr double kMillisecondNs = 1e6, kSecondsNs = 1e9;
constexpr Lessons::Period kWindow = {};
constexpr Lessons::Period kHead = {true, true, false};
constexpr Lessons::Period kThroughout = {false, true, false};

double presence(const Lessons::Amounts& rates) { return rates.launches + rates.nodes; }

// One in which `launches` were made and recorded, at 1000 ns each.
void period(Lessons& lessons, const Lessons::Period& kind, double open_ns, double launches,
            double age_ns = 0, const Lessons::Amounts& at_work = {}) {
  lessons.open(open_ns);
  lessons.cost(launches * 1000);
  if (launches > 0) lessons.launched({launches, 0}, age_ns, at_work);
  lessons.learn(kind, presence);
}

TEST(Lessons, TheFirstIsBelievedAndABurstIsNot) {
  Lessons lessons;
  period(lessons, kWindow, 100 * kMillisecondNs, 1000);
  EXPECT_DOUBLE_EQ(lessons.rates().launches, 1e-5);
  EXPECT_DOUBLE_EQ(lessons.cost_density(), 0.01);
  period(lessons, kWindow, 30 * kMillisecondNs, 30'000);  // a hundred times as many
  EXPECT_LT(lessons.rates().launches, 1.2e-5);
  EXPECT_GT(lessons.busy_rate(), 2e-5) << "of late it was busier";
}

TEST(Lessons, LessThanAFewMillisecondsWaitForMore) {
  Lessons lessons;
  period(lessons, kWindow, 2 * kMillisecondNs, 2000);
  EXPECT_EQ(lessons.rates().launches, 0);
  period(lessons, kWindow, 8 * kMillisecondNs, 8000);
  EXPECT_DOUBLE_EQ(lessons.rates().launches, 1e-3);
}

TEST(Lessons, TheHeadTellsOfItsEnd) {
  Lessons lessons;
  period(lessons, kHead, kSecondsNs, 100);
  for (int i = 0; i < 3; ++i) period(lessons, kHead, kSecondsNs, 10'000);
  EXPECT_DOUBLE_EQ(lessons.rates().launches, 1e-5);
}

TEST(Lessons, RecordsThatComeLateAreOfTheTimeBefore) {
  Lessons lessons;
  period(lessons, kThroughout, kSecondsNs, 1000);
  for (int i = 0; i < 3; ++i) period(lessons, kThroughout, kSecondsNs, 0);
  EXPECT_DOUBLE_EQ(lessons.rates().launches, 1e-6) << "its buffer is not full yet";
  period(lessons, kThroughout, kSecondsNs, 4000, 4 * kSecondsNs);
  EXPECT_NEAR(lessons.rates().launches, 1e-6, 1e-12);
  for (int i = 0; i < 30; ++i) period(lessons, kThroughout, kSecondsNs, 0);
  EXPECT_LT(lessons.rates().launches, 5e-7) << "it rests";
}

TEST(Lessons, AProgramThatRestsIsKnownAsItWorks) {
  Lessons lessons;
  for (int i = 0; i < 10; ++i) period(lessons, kWindow, 100 * kMillisecondNs, 1000);
  for (int i = 0; i < 1000; ++i) period(lessons, kWindow, 100 * kMillisecondNs, 0);
  EXPECT_LT(lessons.rates().launches, 1e-6);
  EXPECT_DOUBLE_EQ(lessons.at_work().launches, 1e-5);
  for (int i = 0; i < 4; ++i) period(lessons, kWindow, 100 * kMillisecondNs, 4000);
  const double more = lessons.at_work().launches;
  EXPECT_GT(more, 3e-5) << "more is believed soon";
  for (int i = 0; i < 4; ++i) period(lessons, kWindow, 100 * kMillisecondNs, 1000);
  EXPECT_GT(lessons.at_work().launches, (more + 1e-5) / 2) << "less by and by";
}

// Of what is recorded without a break it is told; of windows it is not.
TEST(Lessons, WhatIsToldOfWorkIsBelieved) {
  Lessons lessons;
  period(lessons, kHead, 5 * kSecondsNs, 20'000, 5 * kSecondsNs, {1e-4, 2e-3});
  EXPECT_DOUBLE_EQ(lessons.at_work().launches, 1e-4);
  EXPECT_DOUBLE_EQ(lessons.at_work().nodes, 2e-3);
  EXPECT_LT(lessons.rates().launches, 1e-5);
  period(lessons, kWindow, 200 * kMillisecondNs, 20'000, 0, {5e-4, 0});
  EXPECT_GT(lessons.at_work().nodes, 0) << "by and by";
  EXPECT_LT(lessons.at_work().launches, 1.3e-4);
}

TEST(Lessons, WhatIsGivenBackMakesRecordsCheaperButNeverLessThanFree) {
  Lessons lessons;
  period(lessons, kWindow, 100 * kMillisecondNs, 1000);
  lessons.cost(-1e9);
  period(lessons, kWindow, 100 * kMillisecondNs, 1000);
  EXPECT_EQ(lessons.cost_density(), 0);
}

TEST(Lessons, CallsAreOfEachWindow) {
  Lessons lessons;
  for (const double cost_ns : {2e6, 1e6, 1e6, 1e6}) {
    lessons.call(cost_ns);
    period(lessons, kWindow, 30 * kMillisecondNs, 300);
  }
  EXPECT_NEAR(lessons.toggle_cost_ns(), 1.512e6, 1);
}

}  // namespace
}  // namespace purlin::profile::capture
