// SPDX-License-Identifier: Apache-2.0
#include "profile/format/merge.h"

#include "base/text.h"
#include "profile/format/file.h"
#include "profile/format/profiles_for_test.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::profile {
namespace {

Profile part(std::uint64_t seed) {
  return test_profile({.seed = seed, .build = seed % 2 == 0 ? "v1" : "v2"});
}

Profile merged(const std::vector<const Profile*>& parts) {
  Profile whole;
  Merger merger(whole);
  for (const Profile* one : parts) merger.add(*one);
  merger.finish();
  return whole;
}

std::vector<std::string> lines(const Profile& profile, std::string_view kind) {
  std::vector<std::string> kept;
  for (const std::string& line : split(contents(profile), '\n'))
    if (starts_with(line, kind)) kept.push_back(line);
  return kept;
}

TEST(ProfileMerger, TheOrderOfMergingDoesNotMatter) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Profile a = part(seed), b = part(seed + 100), c = part(seed + 201);
    const std::string expected = contents(merged({&a, &b, &c}));
    EXPECT_EQ(contents(merged({&c, &a, &b})), expected) << seed;
    EXPECT_EQ(contents(merged({&b, &c, &a})), expected) << seed;
    const Profile left = merged({&a, &b}), right = merged({&b, &c});
    EXPECT_EQ(contents(merged({&left, &c})), expected) << seed;
    EXPECT_EQ(contents(merged({&a, &right})), expected) << seed;
    Profile into = a;
    merge_into(into, right);
    EXPECT_EQ(contents(into), expected) << seed;
    // A merged profile is one like any other: it comes back from its file.
    EXPECT_EQ(contents(*decode_profile(encode_profile(into))), expected) << seed;
  }
}

TEST(ProfileMerger, EveryEventOfEveryPartIsThereAndPointsWhereItDid) {
  const Profile a = part(1), b = part(2);
  const Profile whole = merged({&a, &b});
  for (const char* kind : {"activity", "call", "op", "range", "process"}) {
    std::vector<std::string> expected = lines(a, kind);
    const std::vector<std::string> more = lines(b, kind);
    expected.insert(expected.end(), more.begin(), more.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(lines(whole, kind), expected) << kind;
  }
  const auto& activities = whole.timeline.activities;
  EXPECT_TRUE(
      std::is_sorted(activities.begin(), activities.end(), [](const auto& x, const auto& y) {
        return std::tie(x.device, x.start_ns) < std::tie(y.device, y.start_ns);
      }));
}

TEST(ProfileMerger, BuildsAndDriversStayApart) {
  Profile old_build, new_build, new_driver;
  for (Profile* profile : {&old_build, &new_build, &new_driver}) {
    profile->environment.devices.resize(1);
    profile->environment.devices[0].driver = profile == &new_driver ? "581" : "580";
    profile->environment.build = profile == &new_build ? "v2" : "v1";
    profile->kernels.resize(1);  // as a capture leaves it: the row does not tell its build
    profile->kernels[0].name = "gemm";
    profile->kernels[0].duration.add(1000);
  }
  const Profile whole = merged({&old_build, &new_build, &new_driver, &old_build});
  ASSERT_EQ(whole.kernels.size(), 3u);
  EXPECT_EQ(whole.kernels[0].duration.count(), 2);
  EXPECT_EQ(whole.kernels[0].build, "v1");
  EXPECT_EQ(whole.kernels[1].build, "v2");
  EXPECT_EQ(whole.kernels[2].device, 1);
  EXPECT_EQ(whole.environment.build, "v1, v2");
}

// PyTorch's traces name GPUs by index only: the first ones of two hosts are two, not one.
TEST(ProfileMerger, TwoRanksHaveTwoGpus) {
  std::vector<Profile> ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    Profile& profile = ranks[static_cast<std::size_t>(rank)];
    profile.environment.devices.resize(1);
    profile.environment.devices[0].id = "cuda:0";
    profile.environment.devices[0].name = "NVIDIA H200";
    profile.processes.resize(1);
    profile.processes[0].rank = rank;
    profile.kernels.resize(1);
    profile.kernels[0].name = "gemm";
    profile.kernels[0].duration.add(100);
    profile.timeline.activities.resize(1);
    profile.timeline.activities[0].duration_ns = 100;
  }
  Profile whole = ranks[0];
  merge_into(whole, ranks[1]);
  ASSERT_EQ(whole.environment.devices.size(), 2u);
  ASSERT_EQ(whole.timeline.activities.size(), 2u);
  EXPECT_NE(whole.timeline.activities[0].device, whole.timeline.activities[1].device);
  Profile again;  // and they stay two
  merge_into(again, whole);
  EXPECT_EQ(again.environment.devices.size(), 2u);
  // One rank's second file is of the same GPU.
  Profile same = ranks[0];
  merge_into(same, ranks[0]);
  EXPECT_EQ(same.environment.devices.size(), 1u);
}

TEST(ProfileMerger, CountersAreMeansOverTheLaunchesTheyWereReadFor) {
  std::vector<Counter> counters = {{"flops", 100, 3}};
  merge_counters(counters, {{"flops", 200, 1}, {"bytes", 7, 2}});
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters[0].value, 125);
  EXPECT_EQ(counters[0].launches, 4);
  EXPECT_EQ(counters[1].value, 7);
}

TEST(ProfileMerger, WhatDoesNotFitTheTimelineIsCounted) {
  const Profile a = part(1), b = part(2);
  Profile whole;
  {
    Merger merger(whole, 600);
    merger.add(a);
    merger.add(b);
  }
  EXPECT_EQ(whole.timeline.activities.size(), a.timeline.activities.size());
  EXPECT_EQ(whole.timeline.left_out,
            a.timeline.left_out + b.timeline.left_out + b.timeline.activities.size());
}

}  // namespace
}  // namespace purlin::profile
