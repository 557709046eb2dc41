// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/timeline.h"

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/testing.h"

#include <gtest/gtest.h>

#include <numeric>

namespace purlin::analyze {
namespace {

std::int64_t idle(const DeviceTime& time, IdleCause cause) {
  return time.idle_ns[static_cast<std::size_t>(cause)];
}

// Every nanosecond painted one by one: slow, and obviously right.
TEST(Timeline, UnionsAreThoseOfABruteForceCount) {
  constexpr std::int64_t kLength = 400;
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const Profile profile = random_timeline(random, kLength);
    const TimelineAnalysis analysis = analyze_timeline(profile);
    for (const DeviceTime& time : analysis.devices) {
      std::int64_t busy = 0, compute = 0, communication = 0, copy = 0, both = 0, exposed = 0;
      std::vector<std::int64_t> moments;
      for (const auto& [begin, end] : time.parts)
        for (std::int64_t t = begin; t < end; ++t) moments.push_back(t);
      for (const std::int64_t t : moments) {
        bool computes = false, communicates = false, copies = false;
        for (const Activity& activity : profile.timeline.activities) {
          if (activity.device != time.device || t < activity.start_ns ||
              t >= activity.start_ns + activity.duration_ns)
            continue;
          const bool kernel = activity.kind == ActivityKind::kKernel;
          const bool nccl = kernel && profile.kernels[activity.row].name.starts_with("nccl");
          computes = computes || (kernel && !nccl);
          communicates = communicates || nccl;
          copies = copies || !kernel;
        }
        busy += computes || communicates || copies ? 1 : 0;
        compute += computes ? 1 : 0;
        communication += communicates ? 1 : 0;
        copy += copies ? 1 : 0;
        both += computes && communicates ? 1 : 0;
        exposed += communicates && !computes ? 1 : 0;
      }
      EXPECT_EQ(time.busy_ns, busy);
      EXPECT_EQ(time.compute_ns, compute);
      EXPECT_EQ(time.communication_ns, communication);
      EXPECT_EQ(time.copy_ns, copy);
      EXPECT_EQ(time.compute_and_communication_ns, both);
      EXPECT_EQ(time.exposed_communication_ns, exposed);
    }
  }
}

// A plain profile: waits of the host, launches whose time is known or not.
TEST(Timeline, WaitsThatWereRecordedWithoutOtherCallsAreCauses) {
  TimelineBuilder builder;
  builder.kernel("a", 0, 1'000);
  builder.call(CallKind::kSync, "cuStreamSynchronize", 200, 1'000, 5);
  builder.kernel("b", 3'000, 1'000, builder.call(CallKind::kLaunch, kQueuedCall, 2'500, 0, kNone));
  builder.call(CallKind::kSync, "cuStreamSynchronize", 3'200, 900, 5);
  builder.kernel("c", 5'000, 1'000);
  builder.kernel("d", 6'100, 1'000);
  const Profile& profile = builder.sorted();
  EXPECT_FALSE(knows_calls(profile.timeline));
  EXPECT_TRUE(knows_waits(profile.timeline));
  const TimelineAnalysis analysis = analyze_timeline(profile, PhaseChoice::kAll);
  ASSERT_EQ(analysis.devices.size(), 1u);
  const DeviceTime& time = analysis.devices[0];
  // The wait itself, and the launch after it; the host between the two.
  EXPECT_EQ(idle(time, IdleCause::kSynchronization), 200 + 500 + 100);
  EXPECT_EQ(idle(time, IdleCause::kHostLaunch), 1'300 + 900);
  EXPECT_EQ(idle(time, IdleCause::kOther), 100) << "no wait, and no known launch";
  EXPECT_EQ(analysis.syncs, 2);
}

// Which of them launched a node is not recorded: the one that began while the device was idle.
TEST(Timeline, AGraphsNodesAfterAnIdleDeviceWereLaunchedInThatTime) {
  TimelineBuilder builder;
  builder.kernel("a", 0, 1'000).graph = 3;
  builder.call(CallKind::kGraphLaunch, "cuGraphLaunch", 1'600, 300, 5);
  builder.kernel("a", 2'000, 1'000).graph = 3;
  builder.kernel("b", 3'500, 1'000).graph = 3;
  const DeviceTime time = analyze_timeline(builder.sorted(), PhaseChoice::kAll).devices.at(0);
  EXPECT_EQ(idle(time, IdleCause::kHostLaunch), 1'000);
  EXPECT_EQ(idle(time, IdleCause::kOther), 500)
      << "none began there: it was queued, or is not known";
}

TEST(Timeline, EveryNanosecondIsInExactlyOneCategory) {
  Random random(11);
  for (int round = 0; round < 1000; ++round) {
    const TimelineAnalysis analysis = analyze_timeline(random_timeline(random, 1000));
    for (const DeviceTime& time : analysis.devices) {
      const std::int64_t causes =
          std::accumulate(time.idle_ns.begin(), time.idle_ns.end(), std::int64_t{0});
      EXPECT_EQ(causes, time.idle_total_ns());
      EXPECT_EQ(time.compute_ns + time.exposed_communication_ns + time.exposed_copy_ns + causes,
                time.span_ns);
      for (const std::int64_t cause : time.idle_ns) EXPECT_GE(cause, 0);
    }
    for (const auto& overview : analysis.overview)
      for (const auto& bucket : overview.shares)
        EXPECT_NEAR(bucket[0] + bucket[1] + bucket[2] + bucket[3], 1, 1e-5);
    for (const StepTime& step : analysis.steps)
      EXPECT_EQ(step.kernel_ns + step.communication_ns + step.copy_ns + step.set_ns +
                    step.runtime_ns + step.data_loader_ns + step.cpu_ns + step.other_ns,
                step.duration_ns);
    for (const QueueStats& queue : analysis.queues) {
      EXPECT_GE(queue.mean_depth, 0);
      EXPECT_GE(queue.max_depth, 0);
      EXPECT_LE(queue.mean_depth, queue.max_depth);
    }
  }
}

TEST(Timeline, StreamsThatOverlapCountOnce) {
  TimelineBuilder builder;
  builder.kernel("gemm", 0, 100, kNone, 7);
  builder.kernel("gemm", 50, 100, kNone, 8);
  builder.copy("h2d", 120, 80, kNone, 9);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  ASSERT_EQ(analysis.devices.size(), 1u);
  const DeviceTime& time = analysis.devices[0];
  EXPECT_EQ(time.span_ns, 200);
  EXPECT_EQ(time.busy_ns, 200);
  EXPECT_EQ(time.compute_ns, 150);
  EXPECT_EQ(time.copy_ns, 80);
  EXPECT_EQ(time.compute_and_copy_ns, 30);
  EXPECT_EQ(time.exposed_copy_ns, 50);
  EXPECT_EQ(time.streams, 3);
  EXPECT_EQ(time.kernel_sum_ns, 200);
}

TEST(Timeline, WorkThatWasQueuedIsTheDevicesTurnAround) {
  TimelineBuilder builder;
  builder.kernel("gemm", 100, 100, builder.launch(0, 10));
  builder.kernel("relu", 203, 50, builder.launch(10, 10));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  const DeviceTime& time = analysis.devices[0];
  EXPECT_EQ(idle(time, IdleCause::kKernelToKernel), 3);
  EXPECT_EQ(idle(time, IdleCause::kHostLaunch), 0);  // what is before the first is no gap
  ASSERT_EQ(analysis.gaps.size(), 1u);
  EXPECT_EQ(analysis.gaps[0].before, "gemm");
  EXPECT_EQ(analysis.gaps[0].after, "relu");
  EXPECT_EQ(analysis.gaps[0].evidence, "launched 180 ns before the gap");
}

TEST(Timeline, AHostThatComesLateIsHostLaunch) {
  TimelineBuilder builder;
  builder.kernel("gemm", 10, 90, builder.launch(0, 10));
  builder.op("aten::slow", 105, 200);
  builder.kernel("relu", 360, 40, builder.launch(300, 20));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kHostLaunch), 260);
  EXPECT_EQ(analysis.gaps[0].evidence,
            "cudaLaunchKernel began 200 ns after the device went idle; aten::slow 195 ns");
}

// The host waited for the device, so nothing was queued: its return and the launch that follows
// are the cost of waiting; other host work in between is not.
TEST(Timeline, SynchronisationIsTheIdlePartOfTheWaitAndTheLaunchAfterIt) {
  TimelineBuilder builder;
  builder.kernel("gemm", 10, 990, builder.launch(0, 10));
  builder.call(CallKind::kSync, "cudaDeviceSynchronize", 20, 1000);  // returns 20 after the end
  builder.kernel("relu", 1070, 30, builder.launch(1050, 15));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  const DeviceTime& time = analysis.devices[0];
  EXPECT_EQ(time.idle_total_ns(), 70);
  EXPECT_EQ(idle(time, IdleCause::kSynchronization), 20 + 20);
  EXPECT_EQ(idle(time, IdleCause::kHostLaunch), 30);
  EXPECT_EQ(analysis.syncs, 1);
  EXPECT_EQ(analysis.sync_idle_ns, 40);
}

TEST(Timeline, ASyncOfAnotherThreadDoesNotDelayTheOneThatLaunches) {
  TimelineBuilder builder;
  builder.kernel("gemm", 10, 90, builder.launch(0, 10));
  builder.call(CallKind::kSync, "cudaDeviceSynchronize", 20, 200, 2);
  builder.kernel("relu", 300, 100, builder.launch(290, 5));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kSynchronization), 0);
}

TEST(Timeline, CallsThatOnlyAskOrMakeTheDeviceWaitAreNoSynchronisation) {
  TimelineBuilder builder;
  builder.kernel("gemm", 10, 90, builder.launch(0, 10));
  builder.call(CallKind::kSync, "cudaEventQuery", 20, 200);
  builder.call(CallKind::kSync, "cudaStreamWaitEvent", 230, 50);
  builder.call(CallKind::kCopy, "cudaMemcpyAsync", 281, 5);
  builder.kernel("relu", 300, 100, builder.launch(290, 5));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.syncs, 0);
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kSynchronization), 0);
}

TEST(Timeline, ACopyThatBlocksIsSynchronisation) {
  TimelineBuilder builder;
  builder.kernel("gemm", 10, 90, builder.launch(0, 10));
  builder.copy("d2h", 130, 20, builder.call(CallKind::kCopy, "cudaMemcpy", 20, 140));
  builder.kernel("relu", 200, 100, builder.launch(180, 5));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.syncs, 1);
  // Before the copy 30; after it until the call returned 10, and the launch that follows 20.
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kSynchronization), 30 + 10 + 20);
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kHostLaunch), 20);
}

// A memcpy to pageable memory returns when it has ended, though its name has "Async".
TEST(Timeline, ACopyToPageableMemoryBlocksThoughItsNameHasAsync) {
  for (const bool pinned : {false, true}) {
    TimelineBuilder builder;
    builder.kernel("gemm", 10, 90, builder.launch(0, 10));
    builder.copy(pinned ? "d2h pinned" : "d2h pageable", 130, 20,
                 builder.call(CallKind::kCopy, "cudaMemcpyAsync", 20, 140));
    builder.kernel("relu", 200, 100, builder.launch(180, 5));
    const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
    EXPECT_EQ(analysis.syncs, pinned ? 0 : 1);
    EXPECT_EQ(idle(analysis.devices[0], IdleCause::kSynchronization) > 0, !pinned);
  }
}

// A memcpy from pageable memory behind other work does so, too, if it is too large for a buffer.
TEST(Timeline, ACopyFromPageableMemoryMayWaitInTheQueue) {
  for (const bool queued : {true, false}) {
    TimelineBuilder builder;
    builder.kernel("gemm", 10, queued ? 90'000 : 90, builder.launch(0, 10));
    const std::int64_t at = queued ? 90'020 : 120;
    builder.copy("h2d pageable", at, 200,
                 builder.call(CallKind::kCopy, "cudaMemcpyAsync", 20, at + 300 - 20));
    EXPECT_EQ(analyze_timeline(builder.sorted()).syncs, queued ? 1 : 0);
  }
}

TEST(Timeline, WaitingForInputIsDataStarvation) {
  TimelineBuilder builder;
  builder.kernel("gemm", 0, 100, builder.launch(0, 1));
  builder.range(RangeKind::kDataLoader, "enumerate(DataLoader)#__next__", 50, 400);
  builder.kernel("gemm", 500, 100, builder.launch(480, 10));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kDataStarvation), 350);
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kHostLaunch), 50);
  EXPECT_EQ(analysis.gaps[0].cause, IdleCause::kDataStarvation);
  EXPECT_EQ(analysis.gaps[0].evidence, "enumerate(DataLoader)#__next__ 350 ns");
}

TEST(Timeline, WithoutTheHostIdleTimeHasNoKnownCause) {
  TimelineBuilder builder;
  builder.kernel("gemm", 0, 100);
  builder.kernel("gemm", 300, 100);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kOther), 200);
  ASSERT_FALSE(analysis.limits.empty());
  EXPECT_NE(analysis.limits[0].find("calls were not recorded"), std::string::npos);
}

// Two traces of one program, taken at different times: no process was late between them.
TEST(Timeline, WhatIsBetweenRecordingsHasNoCause) {
  TimelineBuilder builder;
  builder.kernel("gemm", 10, 100, builder.launch(0, 5));
  const std::uint32_t call = builder.call(CallKind::kLaunch, "cudaLaunchKernel", 100'000, 5, 1, 1);
  builder.kernel("gemm", 100'010, 100, call).process = 1;
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(idle(analysis.devices[0], IdleCause::kOther), 100'000 - 110);
  EXPECT_LE(idle(analysis.devices[0], IdleCause::kHostLaunch), 20);
  ASSERT_FALSE(analysis.limits.empty());
  EXPECT_NE(analysis.limits.back().find("gaps between the recordings"), std::string::npos)
      << analysis.limits.back();
}

TEST(Timeline, SketchesAloneAreNoTimeline) {
  Profile profile;
  profile.kernels.resize(1);
  const TimelineAnalysis analysis = analyze_timeline(profile);
  EXPECT_TRUE(analysis.devices.empty());
  ASSERT_EQ(analysis.limits.size(), 1u);
  EXPECT_NE(analysis.limits[0].find("no timeline"), std::string::npos);
  EXPECT_EQ(to_json(analysis)["devices"].size(), 0u);
}

// What a damaged file may hold: times anywhere, indices out of range.
TEST(Timeline, AbsurdRecordsDoNoHarm) {
  Random random(13);
  const auto absurd = [&]() -> std::int64_t {
    switch (random.below(5)) {
      case 0:
        return std::numeric_limits<std::int64_t>::min();
      case 1:
        return std::numeric_limits<std::int64_t>::max();
      case 2:
        return -static_cast<std::int64_t>(random.below(1000));
      default:
        return static_cast<std::int64_t>(random.below(1000));
    }
  };
  const auto index = [&] {
    return static_cast<std::uint32_t>(random.below(3) == 0 ? random.next() : random.below(5));
  };
  for (int round = 0; round < 300; ++round) {
    Profile profile = random_timeline(random, 1000);
    Timeline& timeline = profile.timeline;
    for (Activity& activity : timeline.activities) {
      activity.start_ns = absurd();
      activity.duration_ns = absurd();
      activity.row = index();
      activity.process = index();
      activity.call = index();
      activity.graph = index();
    }
    for (Call& call : timeline.calls) {
      call.start_ns = absurd();
      call.duration_ns = absurd();
      call.name = index();
      call.process = index();
      call.op = index();
    }
    for (Op& op : timeline.ops) op.parent = index();
    for (Range& range : timeline.ranges) range.name = index();
    timeline.begin_ns = absurd();
    timeline.end_ns = absurd();
    sort_timeline(timeline);
    const TimelineAnalysis analysis = analyze_timeline(profile);
    for (const DeviceTime& time : analysis.devices) {
      EXPECT_GE(time.busy_ns, 0);
      EXPECT_LE(time.busy_ns, time.span_ns);
    }
    EXPECT_FALSE(to_json(analysis).dump().empty());
  }
}

TEST(Timeline, WhatWasLeftOutIsNoIdleTime) {
  TimelineBuilder builder;
  builder.kernel("gemm", 100, 100);
  builder.profile.timeline.begin_ns = 50;
  builder.profile.timeline.end_ns = 1'000'000;
  // The gaps at the edges of a recording are no idle time, unless all of it is asked for.
  EXPECT_EQ(analyze_timeline(builder.sorted()).devices[0].span_ns, 100);
  EXPECT_EQ(analyze_timeline(builder.profile, PhaseChoice::kAll).devices[0].span_ns,
            1'000'000 - 50);
  builder.profile.timeline.left_out = 3;
  const TimelineAnalysis analysis = analyze_timeline(builder.profile, PhaseChoice::kAll);
  EXPECT_EQ(analysis.devices[0].span_ns, 150);
  EXPECT_NE(analysis.limits[0].find("the memory limit left"), std::string::npos);
}

TEST(Timeline, HiddenWorkIsSaid) {
  TimelineBuilder builder;
  builder.call(CallKind::kGraphLaunch, "cudaGraphLaunch", 0, 10);
  builder.launch(20, 5);
  builder.kernel("gemm", 40, 10);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  const std::string limits = Json::array_of(analysis.limits).dump();
  EXPECT_NE(limits.find("no node records for 1 CUDA graph launch:"), std::string::npos);
  EXPECT_NE(limits.find("no kernel record for 1 launch ("), std::string::npos);
  EXPECT_NE(limits.find("no known launch for 1 of 1 activity"), std::string::npos);
}

}  // namespace
}  // namespace purlin::analyze
