// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/cost_estimator.h"

#include <gtest/gtest.h>

namespace purlin::profile::capture {
namespace {

constexpr double kMillisecondNs = 1e6, kSecondsNs = 1e9;
constexpr CostEstimator::Period kWindow = {};
constexpr CostEstimator::Period kStartup = {true, true, false};
constexpr CostEstimator::Period kThroughout = {false, true, false};

double presence(const CostEstimator::Amounts& rates) { return rates.launches + rates.nodes; }

// One in which `launches` were made and recorded, at 1000 ns each.
void period(CostEstimator& estimator, const CostEstimator::Period& kind, double open_ns,
            double launches, double age_ns = 0, const CostEstimator::Amounts& at_work = {}) {
  estimator.open(open_ns);
  estimator.cost(launches * 1000);
  if (launches > 0) estimator.launched({launches, 0}, age_ns, at_work);
  estimator.learn(kind, presence);
}

TEST(CostEstimator, TheFirstIsBelievedAndABurstIsNot) {
  CostEstimator estimator;
  period(estimator, kWindow, 100 * kMillisecondNs, 1000);
  EXPECT_DOUBLE_EQ(estimator.rates().launches, 1e-5);
  EXPECT_DOUBLE_EQ(estimator.cost_density(), 0.01);
  period(estimator, kWindow, 30 * kMillisecondNs, 30'000);  // a hundred times as many
  EXPECT_LT(estimator.rates().launches, 1.2e-5);
  EXPECT_GT(estimator.busy_rate(), 2e-5) << "of late it was busier";
}

TEST(CostEstimator, LessThanAFewMillisecondsWaitForMore) {
  CostEstimator estimator;
  period(estimator, kWindow, 2 * kMillisecondNs, 2000);
  EXPECT_EQ(estimator.rates().launches, 0);
  period(estimator, kWindow, 8 * kMillisecondNs, 8000);
  EXPECT_DOUBLE_EQ(estimator.rates().launches, 1e-3);
}

TEST(CostEstimator, TheHeadTellsOfItsEnd) {
  CostEstimator estimator;
  period(estimator, kStartup, kSecondsNs, 100);
  for (int i = 0; i < 3; ++i) period(estimator, kStartup, kSecondsNs, 10'000);
  EXPECT_DOUBLE_EQ(estimator.rates().launches, 1e-5);
}

TEST(CostEstimator, RecordsThatComeLateAreOfTheTimeBefore) {
  CostEstimator estimator;
  period(estimator, kThroughout, kSecondsNs, 1000);
  for (int i = 0; i < 3; ++i) period(estimator, kThroughout, kSecondsNs, 0);
  EXPECT_DOUBLE_EQ(estimator.rates().launches, 1e-6) << "its buffer is not full yet";
  period(estimator, kThroughout, kSecondsNs, 4000, 4 * kSecondsNs);
  EXPECT_NEAR(estimator.rates().launches, 1e-6, 1e-12);
  for (int i = 0; i < 30; ++i) period(estimator, kThroughout, kSecondsNs, 0);
  EXPECT_LT(estimator.rates().launches, 5e-7) << "it rests";
}

TEST(CostEstimator, AProgramThatRestsIsKnownAsItWorks) {
  CostEstimator estimator;
  for (int i = 0; i < 10; ++i) period(estimator, kWindow, 100 * kMillisecondNs, 1000);
  for (int i = 0; i < 1000; ++i) period(estimator, kWindow, 100 * kMillisecondNs, 0);
  EXPECT_LT(estimator.rates().launches, 1e-6);
  EXPECT_DOUBLE_EQ(estimator.at_work().launches, 1e-5);
  for (int i = 0; i < 4; ++i) period(estimator, kWindow, 100 * kMillisecondNs, 4000);
  const double more = estimator.at_work().launches;
  EXPECT_GT(more, 3e-5) << "more is believed soon";
  for (int i = 0; i < 4; ++i) period(estimator, kWindow, 100 * kMillisecondNs, 1000);
  EXPECT_GT(estimator.at_work().launches, (more + 1e-5) / 2) << "less by and by";
}

// Rates of work are reported for time that is recorded without a break, but not for windows.
TEST(CostEstimator, WhatIsToldOfWorkIsBelieved) {
  CostEstimator estimator;
  period(estimator, kStartup, 5 * kSecondsNs, 20'000, 5 * kSecondsNs, {1e-4, 2e-3});
  EXPECT_DOUBLE_EQ(estimator.at_work().launches, 1e-4);
  EXPECT_DOUBLE_EQ(estimator.at_work().nodes, 2e-3);
  EXPECT_LT(estimator.rates().launches, 1e-5);
  period(estimator, kWindow, 200 * kMillisecondNs, 20'000, 0, {5e-4, 0});
  EXPECT_GT(estimator.at_work().nodes, 0) << "by and by";
  EXPECT_LT(estimator.at_work().launches, 1.3e-4);
}

TEST(CostEstimator, WhatIsGivenBackMakesRecordsCheaperButNeverLessThanFree) {
  CostEstimator estimator;
  period(estimator, kWindow, 100 * kMillisecondNs, 1000);
  estimator.cost(-1e9);
  period(estimator, kWindow, 100 * kMillisecondNs, 1000);
  EXPECT_EQ(estimator.cost_density(), 0);
}

TEST(CostEstimator, CallsAreOfEachWindow) {
  CostEstimator estimator;
  for (const double cost_ns : {2e6, 1e6, 1e6, 1e6}) {
    estimator.call(cost_ns);
    period(estimator, kWindow, 30 * kMillisecondNs, 300);
  }
  EXPECT_NEAR(estimator.toggle_cost_ns(), 1.512e6, 1);
}

}  // namespace
}  // namespace purlin::profile::capture
