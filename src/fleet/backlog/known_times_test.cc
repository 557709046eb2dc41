// SPDX-License-Identifier: Apache-2.0
#include "fleet/backlog/known_times.h"

#include "blobs/directory_blobs.h"
#include "cache/share/share.h"
#include "cache/testing.h"
#include "fleet/backlog/fleet_tasks.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

analysis::Cell hot_cell(const std::string& kernel, const std::string& shape, double us,
                        const std::string& dtype = "f32") {
  analysis::Cell cell;
  cell.kernel = kernel, cell.shape = shape, cell.dtype = dtype, cell.gpu = "NVIDIA H200";
  cell.driver = "580.95";
  for (int i = 0; i < 100; ++i) cell.time.add(us * 1000);
  return cell;
}

class KnownTimesTest : public ::testing::Test {
 protected:
  void push(const std::vector<cache::CacheRecord>& records) {
    const auto objects = blobs::make_directory_blobs(folder_.file("team"));
    ASSERT_TRUE(cache::Share(*objects, clock_, 1).push(records).is_ok());
  }
  cache::TemporaryDirectory folder_;
  FakeClock clock_;
  Log log_{Level::kSilent};
  KnownTimes times_{folder_.path(), clock_};
};

TEST_F(KnownTimesTest, AreOfTheSharedCachesAndServed) {
  EXPECT_TRUE(times_.read(log_).empty());
  cache::Entry unverified = cache::sample_entry(4096);
  unverified.verified = false;
  const cache::CacheRecord winner = cache::make_record(cache::sample_entry());
  push({winner, cache::make_record(unverified)});
  const std::vector<MeasuredTime> found = times_.read(log_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].op, "gemm");
  EXPECT_EQ(found[0].gpu, "NVIDIA H200");
  EXPECT_DOUBLE_EQ(found[0].best_ns, 250e3);
  push({cache::make_record(
      cache::new_status(winner.id, cache::EntryState::kQuarantined, "wrong outputs"))});
  EXPECT_TRUE(times_.read(log_).empty());
}

TEST_F(KnownTimesTest, HeadroomIsOfTheBestTimeThenOfTheRoofElseAssumed) {
  push({cache::make_record(cache::sample_entry())});
  const std::vector<analysis::Cell> cells = {
      hot_cell("sgemm_128x64_nn", "K=512,M=1024,N=1024,B=1", 500),  // in another order
      hot_cell("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64",
               "M=16384,N=12288,K=4096", 3340, "bf16"),
      hot_cell("my_kernel", "", 100)};
  const auto facts = known_facts(cells, times_.read(log_), "580.95", 10);
  ASSERT_EQ(facts.size(), 2u);
  const std::vector<analysis::TuneTask> tasks = analysis::tune_these(cells, facts, 10);
  const auto task_of = [&](const std::string& kernel) {
    for (const auto& put : fleet_tasks(tasks, "CUDA 13.0", "580.95"))
      if (put.ranked.task.key.kernel == kernel) return put;
    return backlog::Leases::Put{};
  };
  const auto known = task_of("sgemm_128x64_nn");
  EXPECT_NEAR(known.ranked.headroom, 0.5, 0.01);
  EXPECT_FALSE(known.ranked.headroom_assumed);
  EXPECT_FALSE(known.stale);
  EXPECT_NE(known.ranked.task.reason.find("where 250.0 us is known"), std::string::npos)
      << known.ranked.task.reason;
  // 1.65e12 FLOP in 3.34 ms are half of the dense peak of an H200.
  const auto roof = task_of(cells[1].kernel);
  EXPECT_NEAR(roof.ranked.headroom, 0.5, 0.02);
  EXPECT_FALSE(roof.ranked.headroom_assumed);
  EXPECT_NE(roof.ranked.task.reason.find("of its roof"), std::string::npos);
  const auto assumed = task_of("my_kernel");
  EXPECT_TRUE(assumed.ranked.headroom_assumed);
  EXPECT_FALSE(assumed.ranked.task.headroom.has_value());
}

TEST_F(KnownTimesTest, AWinnerOfAnotherDriverAloneIsStale) {
  push({cache::make_record(cache::sample_entry())});
  const std::vector<analysis::Cell> cells = {
      hot_cell("sgemm_128x64_nn", "M=1024,N=1024,K=512", 500)};
  EXPECT_TRUE(known_facts(cells, times_.read(log_), "590.10", 10).at(0).stale);
  cache::Entry newer = cache::sample_entry();
  newer.key.driver = "590.10";
  push({cache::make_record(newer)});
  EXPECT_FALSE(known_facts(cells, times_.read(log_), "590.10", 10).at(0).stale);
}

}  // namespace
}  // namespace purlin::fleet
