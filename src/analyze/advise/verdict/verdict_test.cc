// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace purlin::analyze {
namespace {

// Short launches that the host queues in time: a faster host would change nothing.
TEST(Verdict, IdleTimeBetweenQueuedLaunchesIsNamed) {
  Program program;
  TimelineBuilder& builder = program.builder();
  KernelRow row = advised_row("relax(float*, int)", "", "", "");
  std::int64_t device = 0, host = 0;
  for (int step = 0; step < 12; ++step) {
    const std::int64_t begin = host;
    device = std::max(device, host);
    for (int i = 0; i < 40; ++i) {
      const std::uint32_t call = builder.launch(host, 300);
      host += 400;
      device = std::max(device + 1'000, host);
      builder.kernel(row.name, device, 1'600, call);
      builder.profile.kernels[0].duration.add(1'600);
      device += 1'600;
    }
    builder.call(CallKind::kSync, "cudaDeviceSynchronize", host, device - host + 500);
    host = device + 500;
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(step), begin, host - begin);
  }
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "scheduling");
  EXPECT_NE(advice.verdict_text.find("between launches that are queued"), std::string::npos)
      << advice.verdict_text;
}

// Device 1 has twice the work, so device 0 waits for it in the collective: the verdict says which.
TEST(Verdict, TheLastRankIsNamed) {
  TimelineBuilder builder(2);
  for (DeviceInfo& device : builder.profile.environment.devices) device = h200();
  std::int64_t at = 1'000'000;
  for (int step = 0; step < 12; ++step, at += 720'000) {
    for (const int device : {0, 1}) {
      const std::int64_t length = device == 0 ? 300'000 : 600'000;
      builder.kernel("relax", at + 10'000, length, builder.launch(at + device * 2'000, 1'000), 7,
                     device);
      const std::uint32_t call = builder.launch(at + 4'000 + device * 2'000, 1'000);
      builder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 11'000 + length,
                     700'000 - length, call, 9, device);
    }
    builder.call(CallKind::kSync, "cudaDeviceSynchronize", at + 10'000, 704'000);
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(step), at, 715'000);
  }
  for (KernelRow& row : builder.profile.kernels) row.duration.add(1'000'000);
  const Profile& profile = builder.sorted();
  const Advice advice = advise(profile, analyze_timeline(profile), {}, {});
  EXPECT_EQ(advice.verdict, "scheduling");
  EXPECT_NE(advice.verdict_text.find("device 1 is last in"), std::string::npos)
      << advice.verdict_text;
  EXPECT_NE(advice.verdict_text.find("its kernels take 2.0 times as long as the others'"),
            std::string::npos)
      << advice.verdict_text;
}

// Without the host's calls, nothing is known of a host that launches in time.
TEST(Verdict, AHostThatWasNotRecordedIsNotFast) {
  Program program;
  program.steps(12, [](Program& inner) {
    for (int i = 0; i < 8; ++i) inner.late_kernel(product("M=4096,N=4096,K=4096"), 1e5, 150'000);
  });
  const auto asks_the_host = [&] {
    for (const WhatIf& one : program.advice().what_if)
      if (one.resource == "host") return true;
    return false;
  };
  EXPECT_TRUE(asks_the_host());
  Timeline& timeline = program.builder().profile.timeline;
  timeline.calls.clear();
  for (Activity& one : timeline.activities) one.call = kNone;
  EXPECT_FALSE(asks_the_host());
}

}  // namespace
}  // namespace purlin::analyze
