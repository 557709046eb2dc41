// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sampled_stalls.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

StallSite site(std::uint64_t offset, double samples, std::uint32_t file = 0,
               std::uint32_t line = 0) {
  StallSite out;
  out.offset = offset;
  out.file = file;
  out.line = line;
  out.add(0, samples);
  return out;
}

SampledStalls two_parts() {
  SampledStalls stalls;
  stalls.reasons = {"long_scoreboard", "barrier"};
  stalls.files = {"", "/src/a.cu"};
  StallFunction part;
  part.name = "gemm";
  part.sites = {site(32, 5), site(16, 1, 1, 7)};
  stalls.functions.push_back(part);
  part.sites = {site(16, 2), site(16, 3), site(StallSite::kNowhere, 4)};
  stalls.functions.push_back(part);
  part.code = 9;
  stalls.functions.push_back(part);
  return stalls;
}

TEST(SampledStalls, PartsOfAFunctionBecomeOneAndOtherCodeStaysApart) {
  SampledStalls stalls = two_parts();
  stalls.combine();
  ASSERT_EQ(stalls.functions.size(), 2u);
  const StallFunction& gemm = stalls.functions[0];
  ASSERT_EQ(gemm.sites.size(), 3u);
  EXPECT_EQ(gemm.sites[0].offset, 16u);
  EXPECT_EQ(gemm.sites[0].samples(), 6);
  EXPECT_EQ(gemm.sites[0].line, 7u);  // what only one part knows is kept
  EXPECT_EQ(gemm.sites[1].samples(), 5);
  EXPECT_EQ(gemm.sites[2].offset, StallSite::kNowhere);
  EXPECT_EQ(stalls.samples(), 15 + 9);
}

TEST(SampledStalls, BeyondTheBoundTheLeastSampledSitesLoseTheirPlaceNotTheirSamples) {
  SampledStalls stalls = two_parts();
  stalls.functions.pop_back();
  stalls.combine(2);
  ASSERT_EQ(stalls.functions[0].sites.size(), 2u);
  EXPECT_EQ(stalls.functions[0].sites[0].offset, 16u);
  EXPECT_EQ(stalls.functions[0].sites[0].samples(), 6);
  EXPECT_EQ(stalls.functions[0].sites[1].samples(), 9);
  EXPECT_EQ(stalls.samples(), 15);
}

TEST(SampledStalls, PeriodsWiden) {
  SampledStalls stalls;
  stalls.widen_period(0, 0);
  EXPECT_EQ(stalls.least_period, 0u);
  stalls.widen_period(4096, 4096);
  stalls.widen_period(1024, 2048);
  EXPECT_EQ(stalls.least_period, 1024u);
  EXPECT_EQ(stalls.most_period, 4096u);
}

}  // namespace
}  // namespace purlin
