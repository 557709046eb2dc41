// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/recording/stall_log.h"

#include "profile/capture/recording/recorder.h"
#include "profile/format/file.h"

#include <gtest/gtest.h>

namespace purlin::profile::capture {
namespace {

Profile read(const std::string& bytes) {
  Result<Profile> profile = decode_profile(bytes);
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return std::move(profile).value_or({});
}

const StallFunction* named(const Profile& profile, const std::string& name) {
  for (const StallFunction& function : profile.stalls.functions)
    if (function.name == name) return &function;
  return nullptr;
}

TEST(StallLog, PeriodsOfARecorderAddUpInItsFile) {
  Recorder recorder(false);
  recorder.set_meta(R"({"pid":1})", "[]");
  std::string bytes;
  for (int period = 0; period < 3; ++period) {
    {
      Recorder::StallBatch stalls(recorder);
      const std::uint32_t gemm = stalls->function("gemm", 1, 0xabc);
      stalls->add(gemm, 32, stalls->reason("barrier"), 4);
      stalls->add(gemm, 16, stalls->reason("long_scoreboard"), 10);
      stalls->add(gemm, 16, stalls->reason("long_scoreboard"), 1);
      stalls->add(gemm, 48, stalls->reason("wait"), 0);  // nothing
      stalls->add_windows({1, 500, 1024, 2048, 7, 8});
    }
    bytes += recorder.drain(bytes.size(), 1, period == 2);
  }
  EXPECT_EQ(recorder.drain(bytes.size(), 2, false), "");  // nothing new
  const Profile profile = read(bytes);
  const StallFunction* gemm = named(profile, "gemm");
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->device, 1);
  EXPECT_EQ(gemm->code, 0xabcu);
  ASSERT_EQ(gemm->sites.size(), 2u);
  EXPECT_EQ(gemm->sites[0].offset, 16u);
  EXPECT_EQ(gemm->sites[0].samples(), 33);
  EXPECT_EQ(gemm->sites[1].samples(), 12);
  EXPECT_EQ(profile.stalls.windows, 3);
  EXPECT_EQ(profile.stalls.sampled_ns, 1500);
  EXPECT_EQ(profile.stalls.least_period, 1024u);
  EXPECT_EQ(profile.stalls.dropped, 21);
}

TEST(StallLog, WhatDoesNotFitKeepsItsSamples) {
  Recorder recorder(false);
  {
    Recorder::StallBatch stalls(recorder);
    const std::uint32_t barrier = stalls->reason("barrier");
    const std::uint32_t big = stalls->function("big", 0, 1);
    for (std::uint64_t i = 0; i < StallLog::kMaxSites + 10; ++i) stalls->add(big, i, barrier, 1);
    for (std::size_t i = 0; i < StallLog::kMaxFunctions + 10; ++i)
      stalls->add(stalls->function("f" + std::to_string(i), 0, 1), 0, barrier, 1);
    for (int i = 0; i < 100; ++i) stalls->add(big, 0, stalls->reason("r" + std::to_string(i)), 1);
  }
  const Profile profile = read(recorder.drain(0, 1, true));
  EXPECT_EQ(profile.stalls.samples(),
            static_cast<double>(StallLog::kMaxSites + StallLog::kMaxFunctions + 120));
  ASSERT_NE(named(profile, "(other kernels)"), nullptr);
  EXPECT_EQ(named(profile, "(other kernels)")->sites[0].samples(), 11);
  EXPECT_EQ(named(profile, "big")->sites.back().offset, StallSite::kNowhere);
  EXPECT_EQ(named(profile, "big")->sites.back().samples(), 10);
  EXPECT_LE(profile.stalls.reasons.size(), StallLog::kMaxReasons);
}

}  // namespace
}  // namespace purlin::profile::capture
