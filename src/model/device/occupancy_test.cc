// SPDX-License-Identifier: Apache-2.0
#include "model/device/occupancy.h"

#include "base/files.h"
#include "base/text.h"

#include <climits>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace purlin {
namespace {

LaunchShape shape(std::uint32_t blocks, std::uint32_t threads, std::uint32_t dynamic_shared = 0) {
  LaunchShape out;
  out.grid = {blocks, 1, 1};
  out.block = {threads, 1, 1};
  out.dynamic_shared_bytes = dynamic_shared;
  return out;
}

// Rows of a table under tests/data/traces, comments and head left out.
std::vector<std::vector<std::string>> table(const std::string& name) {
  const std::string path = join_path(PURLIN_SOURCE_DIR, "tests/data/traces/" + name);
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : split(read_file(path).value_or(""), '\n'))
    if (!line.empty() && line[0] != '#') rows.push_back(split(line, '\t'));
  if (!rows.empty()) rows.erase(rows.begin());
  return rows;
}

std::uint32_t number(const std::string& text) {
  return static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

LaunchShape shape_of(const std::vector<std::string>& row, std::size_t at) {
  LaunchShape out;
  out.grid = {number(row[at]), number(row[at + 1]), number(row[at + 2])};
  out.block = {number(row[at + 3]), number(row[at + 4]), number(row[at + 5])};
  return out;
}

TEST(Occupancy, AgreesWithTheTracesOwnFigures) {
  int checked = 0, left_out = 0;
  for (const std::vector<std::string>& row : table("kineto_occupancy.tsv")) {
    ASSERT_EQ(row.size(), 11u);
    const auto limits = sm_limits(row[0]);
    ASSERT_TRUE(limits);
    const auto occupancy = occupancy_of(shape_of(row, 2), static_cast<int>(number(row[8])),
                                        number(row[9]), *limits, static_cast<int>(number(row[1])));
    ASSERT_TRUE(occupancy);
    if (number(row[9]) > 48 * 1024) {  // kineto gives 0 for all of these
      EXPECT_GT(occupancy->theoretical, 0);
      ++left_out;
      continue;
    }
    EXPECT_NEAR(occupancy->estimated * 100, std::atof(row[10].c_str()), 1) << join(row, " ");
    ++checked;
  }
  EXPECT_EQ(checked, 36);
  EXPECT_EQ(left_out, 7);
}

TEST(Occupancy, AgreesWithNvidiasCalculatorOnAV100Training) {
  const auto limits = sm_limits("sm_70");
  ASSERT_TRUE(limits);
  int checked = 0;
  for (const std::vector<std::string>& row : table("v100_occupancy.tsv")) {
    ASSERT_EQ(row.size(), 10u);
    const LaunchShape launch = shape_of(row, 0);
    const auto occupancy =
        occupancy_of(launch, static_cast<int>(number(row[6])), number(row[7]), *limits, 80);
    ASSERT_TRUE(occupancy) << join(row, " ");
    EXPECT_EQ(occupancy->blocks_per_sm, static_cast<int>(number(row[9]))) << join(row, " ");
    // The trace counts warps by threads, of the whole grid.
    const double warps = occupancy->waves * occupancy->blocks_per_sm *
                         static_cast<double>(launch.threads_per_block()) / 32;
    EXPECT_NEAR(warps, std::atof(row[8].c_str()), 0.01);
    ++checked;
  }
  EXPECT_EQ(checked, 174);
}

TEST(Occupancy, NamesWhatLimits) {
  const SmLimits h100 = *sm_limits("sm_90");
  Occupancy o = *occupancy_of(shape(10'000, 256), 32, 0, h100);
  EXPECT_EQ(o.limiter, OccupancyLimiter::kWarps);
  EXPECT_DOUBLE_EQ(o.theoretical, 1);
  EXPECT_EQ(o.by_shared, 228);  // the driver's 1 KiB for each block

  o = *occupancy_of(shape(10'000, 256), 128, 0, h100);
  EXPECT_EQ(o.limiter, OccupancyLimiter::kRegisters);
  EXPECT_EQ(o.blocks_per_sm, 2);
  EXPECT_DOUBLE_EQ(o.theoretical, 0.25);

  o = *occupancy_of(shape(10'000, 32), 16, 0, h100);
  EXPECT_EQ(o.limiter, OccupancyLimiter::kBlocks);
  EXPECT_DOUBLE_EQ(o.theoretical, 0.5);

  o = *occupancy_of(shape(10'000, 128, 64 * 1024), 32, 0, h100);
  EXPECT_EQ(o.limiter, OccupancyLimiter::kSharedMemory);
  EXPECT_EQ(to_text(o.limiter), "shared memory");
}

// "64 KB allows 4 blocks per SM", a seed says; it is 3 on an H100, 2 on an A100, 1 on a V100.
TEST(Occupancy, SixtyFourKibOfSharedMemory) {
  EXPECT_EQ(occupancy_of(shape(1, 128), 32, 65536, *sm_limits("sm_90"))->blocks_per_sm, 3);
  EXPECT_EQ(occupancy_of(shape(1, 128), 32, 65536, *sm_limits("sm_80"))->blocks_per_sm, 2);
  EXPECT_EQ(occupancy_of(shape(1, 128), 32, 65536, *sm_limits("sm_70"))->blocks_per_sm, 1);
}

TEST(Occupancy, ASmallGridFillsLess) {
  const SmLimits h100 = *sm_limits("sm_90");
  const Occupancy o = *occupancy_of(shape(132, 256), 32, 0, h100, 132);
  EXPECT_DOUBLE_EQ(o.theoretical, 1);
  EXPECT_DOUBLE_EQ(o.estimated, 0.125);  // one block of eight
  EXPECT_DOUBLE_EQ(o.waves, 0.125);
}

TEST(Occupancy, WhatCannotRunHasNone) {
  const SmLimits h100 = *sm_limits("sm_90"), a100 = *sm_limits("sm_80");
  EXPECT_FALSE(occupancy_of(shape(1, 2048), 32, 0, h100));
  EXPECT_FALSE(occupancy_of(shape(0, 128), 32, 0, h100));
  EXPECT_FALSE(occupancy_of(shape(1, 1024), 128, 0, h100));  // registers of a block
  EXPECT_FALSE(occupancy_of(shape(1, 128), 300, 0, h100));
  EXPECT_FALSE(occupancy_of(shape(1, 128), 32, 228 * 1024, h100));
  EXPECT_FALSE(occupancy_of(shape(1, 128), 32, INT64_MAX / 2, h100));
  LaunchShape clusters = shape(64, 128);
  clusters.cluster = {2, 1, 1};
  EXPECT_TRUE(occupancy_of(clusters, 32, 0, h100));
  EXPECT_FALSE(occupancy_of(clusters, 32, 0, a100));  // has no clusters
  clusters.cluster = {32, 1, 1};
  EXPECT_FALSE(occupancy_of(clusters, 32, 0, h100));
  clusters.cluster = {0xFFFFFFFFu, 0xFFFFFFFFu, 0xFFFFFFFFu};
  EXPECT_FALSE(occupancy_of(clusters, 32, 0, h100));
}

TEST(Occupancy, TheLimitThatALaunchIsBeyondIsNamed) {
  const SmLimits h100 = *sm_limits("sm_90");
  EXPECT_EQ(beyond_limits(shape(1, 128), 32, 0, h100), "");
  EXPECT_EQ(beyond_limits(shape(1, 128), 32, 4 << 20, h100),
            "4.0 MiB of shared memory a block, at most 227.0 KiB");
  EXPECT_EQ(beyond_limits(shape(1, 2048), 32, 0, h100), "2048 threads a block, at most 1024");
  EXPECT_EQ(beyond_limits(shape(1, 1024), 128, 0, h100), "131072 registers a block, at most 65536");
}

TEST(Occupancy, ArchitecturesKnown) {
  for (const char* arch : {"sm_50", "sm_52", "sm_60", "sm_61", "sm_70", "sm_75", "sm_80", "sm_86",
                           "sm_89", "sm_90", "sm_90a", "sm_100", "sm_103", "sm_120", "sm_120f"})
    EXPECT_TRUE(sm_limits(arch)) << arch;
  for (const char* arch : {"", "sm_", "sm_35", "sm_99", "gfx942", "sm_90x", "sm_99999999999999"})
    EXPECT_FALSE(sm_limits(arch)) << arch;
  EXPECT_EQ(sm_limits("sm_75")->warps, 32);
  EXPECT_EQ(sm_limits("sm_86")->blocks, 16);
  EXPECT_EQ(sm_limits("sm_89")->blocks, 24);
}

}  // namespace
}  // namespace purlin
