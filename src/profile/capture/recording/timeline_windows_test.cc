// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/recording/timeline_windows.h"

#include <gtest/gtest.h>

namespace purlin::profile::capture {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000'000'000, kMs = 1'000'000;

// Launches at a regular distance; how many are admitted.
std::uint32_t run(TimelineWindows& windows, std::int64_t from_ms, std::int64_t to_ms,
                  std::int64_t step_ns) {
  std::uint32_t admitted = 0;
  for (std::int64_t at = from_ms * kMs; at < to_ms * kMs; at += step_ns)
    admitted += windows.admit(kStart + at) ? 1 : 0;
  return admitted;
}

TEST(TimelineWindows, AShortRunIsKeptWhole) {
  TimelineWindows windows;
  EXPECT_EQ(windows.from_ns(), 0);
  EXPECT_EQ(run(windows, 0, 90, kMs), 90u);
  EXPECT_EQ(windows.from_ns(), 0);
}

TEST(TimelineWindows, LaterWindowsReplaceEarlierOnes) {
  TimelineWindows windows;
  run(windows, 0, 1500, kMs);
  // The window from 0.8 s on has 700 launches, and the one before from 0.4 s joins it.
  EXPECT_EQ(windows.from_ns(), kStart + 400 * kMs);
}

TEST(TimelineWindows, AWindowThatHasJustBegunReplacesNothing) {
  TimelineWindows windows;
  run(windows, 0, 810, kMs);
  EXPECT_EQ(windows.from_ns(), kStart + 200 * kMs);
}

TEST(TimelineWindows, EachWindowHasABound) {
  TimelineWindows windows;
  const std::uint32_t admitted = run(windows, 0, 800, 5'000);  // 160,000 launches
  EXPECT_EQ(admitted, 20'000u + 20'000u + 2 * TimelineWindows::kMaxEvents);
  // Both windows are full at their begin: between them launches are missing.
  EXPECT_EQ(windows.from_ns(), kStart + 400 * kMs);
}

TEST(TimelineWindows, ALateIdlePhaseDoesNotReplaceTheWork) {
  TimelineWindows windows;
  run(windows, 0, 1600, kMs);
  run(windows, 60'000, 60'100, 50 * kMs);
  EXPECT_EQ(windows.from_ns(), kStart + 400 * kMs);
}

TEST(TimelineWindows, ARequestEndsThem) {
  TimelineWindows windows;
  run(windows, 0, 500, kMs);
  windows.request(kStart + 700 * kMs);
  windows.request(kStart + 900 * kMs);
  EXPECT_FALSE(windows.admit(kStart + 1000 * kMs));
  EXPECT_TRUE(windows.requested());
  EXPECT_EQ(windows.from_ns(), kStart + 700 * kMs);
}

TEST(TimelineWindows, CallsHaveTheirOwnBoundAndEndWithTheLaunches) {
  TimelineWindows windows;
  EXPECT_TRUE(windows.admit_call(kStart)) << "before the first launch";
  run(windows, 0, 400, 5'000);
  EXPECT_TRUE(windows.admit_call(kStart + 50 * kMs));
  EXPECT_FALSE(windows.admit_call(kStart + 350 * kMs)) << "its window has all its launches";
  std::uint32_t admitted = 0;
  for (std::uint32_t i = 0; i < 2 * TimelineWindows::kMaxEvents; ++i)
    admitted += windows.admit_call(kStart + 900 * kMs) ? 1 : 0;
  EXPECT_EQ(admitted, TimelineWindows::kMaxEvents);
  windows.request(kStart + 1000 * kMs);
  EXPECT_FALSE(windows.admit_call(kStart + 1001 * kMs));
}

TEST(TimelineWindows, ATimeBeforeTheFirstIsOfTheFirstWindow) {
  TimelineWindows windows;
  EXPECT_TRUE(windows.admit(kStart));
  EXPECT_TRUE(windows.admit(kStart - 5'000 * kMs));
  EXPECT_EQ(windows.from_ns(), 0);
}

}  // namespace
}  // namespace purlin::profile::capture
