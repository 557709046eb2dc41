// SPDX-License-Identifier: Apache-2.0
#include "measure/timing.h"

#include "gpu/fake/fake_device.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::measure {
namespace {

std::vector<Sample> counted(int n) {
  std::vector<Sample> samples;
  for (int i = n; i >= 1; --i) samples.push_back({static_cast<double>(i), 0});
  return samples;
}

TEST(MedianInterval, TakesTheRanksOfTheBinomialTable) {
  struct Row {
    int n;
    double low, high;
  };
  // The ranks of the tables of the sign test (Conover, Practical Nonparametric Statistics).
  for (const Row row : {Row{1, 1, 1},
                        {5, 1, 5},
                        {6, 1, 6},
                        {8, 1, 8},
                        {9, 2, 8},
                        {10, 2, 9},
                        {11, 2, 10},
                        {12, 3, 10},
                        {15, 4, 12},
                        {20, 6, 15},
                        {25, 8, 18},
                        {30, 10, 21},
                        {40, 14, 27},
                        {50, 18, 33}}) {
    const Interval interval = median_interval_ms(counted(row.n));
    EXPECT_EQ(interval.low, row.low) << row.n;
    EXPECT_EQ(interval.high, row.high) << row.n;
  }
  // Far past the point at which 2^-n underflows: 5000 -+ 1.96 * sqrt(n) / 2.
  const Interval large = median_interval_ms(counted(10'000));
  EXPECT_NEAR(large.low, 4902, 2);
  EXPECT_NEAR(large.high, 5099, 2);
  EXPECT_EQ(median_interval_ms({}).high, 0);
}

// A device whose every launch takes what `next` says and moves a fake clock by it.
class ScriptedDevice : public gpu::FakeDevice {
 public:
  explicit ScriptedDevice(std::function<double()> next) : next_(std::move(next)) {}
  Status run(const gpu::Launch&) override {
    ++runs;
    return spend(next_());
  }
  Result<std::vector<Sample>> time(const gpu::Launch&, const gpu::TimingRequest& request) override {
    requests.push_back(request);
    if (!failure.is_ok()) return failure;
    std::vector<Sample> samples;
    for (int i = 0; i < request.samples; ++i) {
      const double ms = next_();
      samples.push_back({ms, 0});
      static_cast<void>(spend(ms * request.launches_per_sample));
    }
    return samples;
  }
  Status spend(double ms) {
    if (spends) clock.now_ns += static_cast<std::int64_t>(ms * 1e6);
    return Status::ok();
  }
  FakeClock clock;
  Status failure;
  int runs = 0;
  bool spends = true;
  std::vector<gpu::TimingRequest> requests;

 private:
  std::function<double()> next_;
};

Timing timed(ScriptedDevice& device, const Policy& policy, const Restore& restore = {}) {
  const Result<Timing> timing = time_kernel(device, gpu::Launch{}, policy, restore, device.clock);
  EXPECT_TRUE(timing.is_ok()) << timing.status().message();
  return timing.is_ok() ? *timing : Timing{};
}

TEST(TimeKernel, StopsAtTheMinimumWhenSamplesAgree) {
  ScriptedDevice device([] { return 1.0; });
  const Timing timing = timed(device, Policy{});
  EXPECT_EQ(timing.samples.size(), 7u);
  EXPECT_EQ(timing.launches_per_sample, 1);
  EXPECT_FALSE(timing.gave_up);
}

TEST(TimeKernel, NeverTimesTheFirstLaunch) {
  int launch = 0;
  ScriptedDevice device([&] { return launch++ == 0 ? 500.0 : 1.0; });  // a lazy compilation
  const Timing timing = timed(device, Policy{});
  EXPECT_EQ(device.runs, 1);
  for (const Sample& sample : timing.samples) EXPECT_EQ(sample.ms, 1.0);
}

TEST(TimeKernel, GoesOnToTheMaximumWhenSamplesDisagree) {
  int launch = 0;
  ScriptedDevice device([&] { return ++launch % 2 == 0 ? 1.0 : 1.5; });
  EXPECT_EQ(timed(device, Policy{}).samples.size(), 40u);
}

TEST(TimeKernel, AClockThatStepsBackCostsASampleAndNotTheKernel) {
  int launch = 0;
  ScriptedDevice device([&] { return ++launch % 7 == 0 ? -3.0 : 1.0; });
  const Timing timing = timed(device, Policy{});
  EXPECT_GT(timing.left_out, 0);
  EXPECT_GE(timing.samples.size(), 7u);
  for (const Sample& sample : timing.samples) EXPECT_EQ(sample.ms, 1.0);
}

TEST(TimeKernel, AClockThatNeverWorksIsNoLostDevice) {
  for (const double ms : {-1.0, 1e300, std::nan("")}) {
    ScriptedDevice device([&] { return ms; });
    device.spends = false;
    const Result<Timing> timing = time_kernel(device, gpu::Launch{}, Policy{}, {}, device.clock);
    EXPECT_EQ(timing.status().code(), Code::kUnavailable) << timing.status().message();
  }
}

TEST(TimeKernel, StopsInBetweenOnceTheIntervalIsNarrow) {
  // Two outliers: at 7 samples the interval is the full range, at 12 it is inside.
  const std::vector<double> times = {1, 1, 1, 1.2, 1, 1, 1.2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  std::size_t at = 0;
  ScriptedDevice device([&] { return times[std::min(at++, times.size() - 1)]; });
  const std::size_t taken = timed(device, Policy{}).samples.size();
  EXPECT_GT(taken, 7u);
  EXPECT_LT(taken, 20u);
}

TEST(TimeKernel, TheBudgetEndsItOnceTheMinimumIsThere) {
  int launch = 0;
  ScriptedDevice device([&] { return ++launch % 2 == 0 ? 1000.0 : 1500.0; });
  EXPECT_EQ(timed(device, Policy{}).samples.size(), 7u);
}

TEST(TimeKernel, RunsShortKernelsBackToBack) {
  ScriptedDevice device([] { return 0.001; });
  const Timing timing = timed(device, Policy{});
  EXPECT_GE(timing.launches_per_sample, 20);
  EXPECT_LE(timing.launches_per_sample, 30);
  EXPECT_EQ(timing.samples.front().ms, 0.001);
}

TEST(TimeKernel, SaysHowItTimed) {
  ScriptedDevice device([] { return 0.001; });
  EXPECT_EQ(timed(device, Policy{}).how, "event x22");  // a device that says nothing of itself
  EXPECT_FALSE(device.requests.back().graph);
  device.graphs = true;
  EXPECT_EQ(timed(device, Policy{}).launches_per_sample, 1100);  // 1 ms of launches
  EXPECT_TRUE(device.requests.back().graph);
  timed(device, Policy{}, [] { return Status::ok(); });
  EXPECT_EQ(device.requests.back().launches_per_sample, 22) << "few, where contents wear out";
  ScriptedDevice slow([] { return 1.2; });
  slow.graphs = true;
  EXPECT_EQ(timed(slow, Policy{}).how, "event");
  EXPECT_FALSE(slow.requests.back().graph) << "a graph of one launch is no gain";
}

// A launch takes 1 us, and two events around it 4 us more.
class EventfulDevice : public ScriptedDevice {
 public:
  EventfulDevice() : ScriptedDevice([] { return 0.001; }) { graphs = true; }
  Result<std::vector<Sample>> time(const gpu::Launch& launch,
                                   const gpu::TimingRequest& request) override {
    PURLIN_ASSIGN(std::vector<Sample> samples, ScriptedDevice::time(launch, request));
    for (Sample& sample : samples) sample.ms += 0.004 / request.launches_per_sample;
    return samples;
  }
};

TEST(TimeKernel, WhatEventsCostDropsNoShortKernelOutOfTheRace) {
  EventfulDevice device;
  Policy policy;
  policy.give_up_ms = 0.00102;  // a rival that was timed as a graph
  policy.noise = 0.01;
  const Timing timing = timed(device, policy);
  EXPECT_FALSE(timing.gave_up);
  EXPECT_GT(timing.launches_per_sample, 100);
  EXPECT_NEAR(median_ms(timing.samples), 0.001, 1e-5);
}

TEST(TimeKernel, AGraphTakesEachSetOfInputsEquallyOften) {
  ScriptedDevice device([] { return 0.001; });
  device.graphs = true;
  gpu::Launch launch;
  launch.further_arguments.resize(499);
  const Result<Timing> timing = time_kernel(device, launch, Policy{}, {}, device.clock);
  ASSERT_TRUE(timing.is_ok());
  EXPECT_EQ(timing->launches_per_sample, 1500);  // 1100 would do, of 500 sets
}

TEST(TimeKernel, AClockTooCoarseForOneLaunchDoesNotStopIt) {
  ScriptedDevice device([] { return 0.0; });
  EXPECT_GT(timed(device, Policy{}).launches_per_sample, 1000);
}

TEST(TimeKernel, AFlushedCacheForbidsBackToBack) {
  ScriptedDevice device([] { return 0.001; });
  Policy policy;
  policy.flush_l2 = true;
  EXPECT_EQ(timed(device, policy).launches_per_sample, 1);
  EXPECT_TRUE(device.requests.back().flush_l2);
}

TEST(TimeKernel, RacingGivesUpAfterTwoSlowSamples) {
  ScriptedDevice device([] { return 1.2; });
  Policy policy;
  policy.give_up_ms = 1.0;
  const Timing timing = timed(device, policy);
  EXPECT_TRUE(timing.gave_up);
  EXPECT_EQ(timing.samples.size(), 2u);
}

TEST(TimeKernel, RacingSparesAHopelessKernelMostOfItsWarmUp) {
  ScriptedDevice device([] { return 50.0; });
  Policy policy;
  policy.give_up_ms = 1.0;
  EXPECT_TRUE(timed(device, policy).gave_up);
  EXPECT_EQ(device.requests.size(), 2u);  // one warm-up launch, one batch of two
}

TEST(TimeKernel, RacingKeepsAKernelThatMayStillWin) {
  ScriptedDevice device([] { return 0.99; });
  Policy policy;
  policy.give_up_ms = 1.0;
  EXPECT_FALSE(timed(device, policy).gave_up);
}

TEST(TimeKernel, RacingNeedsCertaintyNearTheLimit) {
  ScriptedDevice device([] { return 1.05; });  // within the margin of two samples
  Policy policy;
  policy.give_up_ms = 1.0;
  const Timing timing = timed(device, policy);
  EXPECT_TRUE(timing.gave_up);
  EXPECT_GE(timing.samples.size(), 6u);
}

TEST(TimeKernel, RestoresBeforeEverySample) {
  ScriptedDevice device([] { return 1.0; });
  int restores = 0;
  const Timing timing = timed(device, Policy{}, [&] {
    ++restores;
    return Status::ok();
  });
  EXPECT_EQ(timing.samples.size(), 7u);
  EXPECT_EQ(restores, device.runs + static_cast<int>(device.requests.size()));
  for (const gpu::TimingRequest& request : device.requests) EXPECT_EQ(request.samples, 1);
}

TEST(TimeKernel, RecordsTheClock) {
  ScriptedDevice device([] { return 1.0; });
  device.mutable_info().clock_mhz = 1234;
  EXPECT_EQ(timed(device, Policy{}).samples.front().sm_clock_mhz, 1234);
}

TEST(TimeKernel, PassesOnTheDevicesFailure) {
  ScriptedDevice device([] { return 1.0; });
  device.failure = {Code::kFailed, "gone"};
  const Result<Timing> timing = time_kernel(device, gpu::Launch{}, Policy{}, {}, device.clock);
  EXPECT_EQ(timing.status().message(), "gone");
}

TEST(TimeKernel, RefusesATimeThatIsNone) {
  ScriptedDevice device([] { return -1.0; });
  EXPECT_FALSE(time_kernel(device, gpu::Launch{}, Policy{}, {}, device.clock).is_ok());
}

// Each call after the first is a batch: what it asked of the device.
std::vector<gpu::TimingRequest> batches(ScriptedDevice& device, const Restore& restore = {}) {
  Pace pace;
  for (int i = 0; i < 3; ++i) {
    if (i == 1) device.requests.clear();
    const auto timing = time_batch(device, gpu::Launch{}, Policy{}, pace, restore, device.clock);
    EXPECT_TRUE(timing.is_ok()) << timing.status().message();
    EXPECT_EQ(timing->samples.empty(), i == 0) << "the first warms up";
  }
  return device.requests;
}

TEST(TimeBatch, ABatchIsOneLaunchOrAFewMilliseconds) {
  for (const double ms : {0.001, 0.3, 0.9, 1.7, 2.8, 9.0, 400.0}) {
    ScriptedDevice device([=] { return ms; });
    const std::vector<gpu::TimingRequest> asked = batches(device);
    ASSERT_EQ(asked.size(), 2u) << ms;
    EXPECT_EQ(device.runs, 1) << ms;
    for (const gpu::TimingRequest& request : asked) {
      EXPECT_TRUE(request.sleeps);
      EXPECT_LE(request.samples * request.launches_per_sample * ms, std::max(ms, kBatchMs)) << ms;
    }
  }
}

TEST(TimeBatch, LeavesOutTheSampleBehindAnotherKernelWhereThereIsRoom) {
  int launch = 0;
  ScriptedDevice device([&] { return launch++ % 4 == 2 ? 1.5 : 1.0; });
  Pace pace{1, 1.25};
  launch = 2;
  const auto timing = time_batch(device, gpu::Launch{}, Policy{}, pace, {}, device.clock);
  ASSERT_EQ(timing->samples.size(), 3u);
  for (const Sample& sample : timing->samples) EXPECT_EQ(sample.ms, 1.0);
}

TEST(TimeBatch, RestoresBeforeEverySample) {
  ScriptedDevice device([] { return 1.0; });
  int restores = 0;
  const std::vector<gpu::TimingRequest> asked = batches(device, [&] {
    ++restores;
    return Status::ok();
  });
  for (const gpu::TimingRequest& request : asked) EXPECT_EQ(request.samples, 1);
  EXPECT_EQ(restores, 4);  // the launch and the sample of the warm-up, and two batches
}

TEST(PolicyJson, RoundTripsAndNamesWhatIsWrong) {
  Policy policy;
  policy.warmup_launches = 5;
  policy.min_samples = 3;
  policy.max_samples = 9;
  policy.budget_s = 0.25;
  policy.target_error = 0.02;
  policy.min_sample_ms = 0.5;
  policy.flush_l2 = true;
  policy.give_up_ms = 7;
  policy.inputs = Policy::Inputs::kRotate;
  const Result<Policy> back = policy_from_json(to_json(policy));
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(to_json(*back), to_json(policy));
  EXPECT_EQ(to_json(*policy_from_json(Json::object())), to_json(Policy{}));
  for (const char* bad :
       {R"({"budget_s": "long"})", R"({"budget_s": -1})", R"([])", R"({"min_samples": 2.5})",
        R"({"flush_l2": 1})", R"({"inputs": "new"})", R"({"min_samples": 9, "max_samples": 3})"})
    EXPECT_FALSE(policy_from_json(*Json::parse(bad)).is_ok()) << bad;
  EXPECT_NE(
      policy_from_json(*Json::parse(R"({"budget_s": -1})")).status().message().find("budget_s"),
      std::string::npos);
}

}  // namespace
}  // namespace purlin::measure
