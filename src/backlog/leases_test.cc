// SPDX-License-Identifier: Apache-2.0
#include "backlog/leases.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace purlin::backlog {
namespace {

constexpr std::int64_t kNow = 1'790'000'000'000'000'000, kMinute = 60'000'000'000;

Leases::Put task_to_put(const std::string& kernel, double gpu_time_ns, bool stale = false) {
  Leases::Put put;
  put.ranked.task.key = {"tune", kernel, "M=1", "H100", "12.8", "570"};
  put.ranked.gpu_time_ns = gpu_time_ns;
  put.ranked.headroom = 0.5;
  put.stale = stale;
  return put;
}

class LeasesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_directory("leases");
    path_ = join_path(folder_, "leases.db");
  }
  void TearDown() override { static_cast<void>(remove_tree(folder_)); }
  Leases open() { return Leases::open(path_).value(); }
  std::string folder_, path_;
};

TEST_F(LeasesTest, TheLargestSavingComesFirstAndStaleBeforeIt) {
  Leases leases = open();
  ASSERT_TRUE(leases
                  .put({task_to_put("small", 1e9), task_to_put("large", 9e9),
                        task_to_put("stale", 1e6, true)},
                       kNow)
                  .is_ok());
  for (const char* const name : {"stale", "large", "small"}) {
    const auto lease = leases.take("w", {"H100"}, kMinute, kNow);
    ASSERT_TRUE(lease.is_ok() && lease->has_value());
    EXPECT_EQ((*lease)->ranked.task.key.kernel, name);
  }
  EXPECT_FALSE(leases.take("w", {"H100"}, kMinute, kNow)->has_value());
}

TEST_F(LeasesTest, AWorkerTakesTasksOfItsDevicesOnly) {
  Leases leases = open();
  ASSERT_TRUE(leases.put({task_to_put("a", 1e9)}, kNow).is_ok());
  EXPECT_FALSE(leases.take("w", {"MI300X"}, kMinute, kNow)->has_value());
  EXPECT_TRUE(leases.take("w", {}, kMinute, kNow)->has_value());
}

TEST_F(LeasesTest, TwoWorkersNeverHoldOneTask) {
  constexpr int kTasks = 40, kWorkers = 4;
  {
    Leases leases = open();
    std::vector<Leases::Put> tasks;
    for (int i = 0; i < kTasks; ++i) tasks.push_back(task_to_put("kernel" + std::to_string(i), i));
    ASSERT_TRUE(leases.put(tasks, kNow).is_ok());
  }
  std::vector<std::vector<std::string>> taken(kWorkers);
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker)
    workers.emplace_back([&, worker] {
      Leases leases = open();
      for (;;) {
        const auto lease = leases.take(std::to_string(worker), {}, kMinute, kNow);
        if (!lease.is_ok() || !lease->has_value()) return;
        taken[static_cast<std::size_t>(worker)].push_back((*lease)->ranked.task.id());
      }
    });
  for (std::thread& worker : workers) worker.join();
  std::set<std::string> distinct;
  std::size_t all = 0;
  for (const auto& own : taken) all += own.size(), distinct.insert(own.begin(), own.end());
  EXPECT_EQ(all, static_cast<std::size_t>(kTasks));
  EXPECT_EQ(distinct.size(), all);
}

TEST_F(LeasesTest, TheLeaseOfADeadWorkerEndsAndItsLateResultIsRefused) {
  Leases leases = open();
  ASSERT_TRUE(leases.put({task_to_put("a", 1e9)}, kNow).is_ok());
  const Lease dead = **leases.take("dead", {}, kMinute, kNow);
  EXPECT_FALSE(leases.take("b", {}, kMinute, kNow + kMinute - 1)->has_value());
  const auto next = leases.take("b", {}, kMinute, kNow + kMinute);
  ASSERT_TRUE(next.is_ok() && next->has_value());
  EXPECT_GT((*next)->token, dead.token);
  EXPECT_EQ((*next)->attempt, 2);
  const std::string id = dead.ranked.task.id();
  EXPECT_EQ(leases.heartbeat(id, dead.token, kMinute, kNow + kMinute).status().code(),
            Code::kCancelled);
  EXPECT_EQ(leases.finish(id, dead.token, "late", 5, kNow + kMinute).code(), Code::kCancelled);
  EXPECT_EQ(*leases.spent_gpu_s(kNow), 0);
  EXPECT_TRUE(leases.finish(id, (*next)->token, "1.3x", 5, kNow + kMinute).is_ok());
  EXPECT_EQ(leases.finish(id, (*next)->token, "again", 5, kNow).code(), Code::kCancelled);
  const auto list = leases.list(kNow);
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(list->front().state, TaskState::kDone);
  EXPECT_EQ(list->front().outcome, "1.3x");
  EXPECT_EQ(*leases.spent_gpu_s(kNow), 5);
  EXPECT_EQ(*leases.spent_gpu_s(kNow + 86'400'000'000'000), 0);
  EXPECT_EQ(*leases.spent_gpu_s_in_all(), 5);
}

TEST_F(LeasesTest, AHeartbeatKeepsTheLease) {
  Leases leases = open();
  ASSERT_TRUE(leases.put({task_to_put("a", 1e9)}, kNow).is_ok());
  const Lease lease = **leases.take("w", {}, kMinute, kNow);
  const auto until =
      leases.heartbeat(lease.ranked.task.id(), lease.token, kMinute, kNow + kMinute / 2);
  ASSERT_TRUE(until.is_ok());
  EXPECT_EQ(*until, kNow + kMinute * 3 / 2);
  EXPECT_FALSE(leases.take("b", {}, kMinute, kNow + kMinute)->has_value());
}

TEST_F(LeasesTest, WhatIsGivenBackIsFreeAndThreeFailuresEndIt) {
  Leases leases = open();
  ASSERT_TRUE(leases.put({task_to_put("a", 1e9)}, kNow).is_ok());
  const auto give_back = [&](bool failed) {
    const Lease lease = **leases.take("w", {}, kMinute, kNow);
    ASSERT_TRUE(
        leases.give_back(lease.ranked.task.id(), lease.token, "why", failed, 1, kNow).is_ok());
  };
  for (int i = 0; i < 5; ++i) give_back(false);
  for (int i = 0; i < Leases::kMaxAttempts; ++i) give_back(true);
  EXPECT_FALSE(leases.take("w", {}, kMinute, kNow)->has_value());
  EXPECT_EQ(leases.list(kNow)->front().state, TaskState::kFailed);
  // Sources list their tasks each time: that alone opens nothing.
  ASSERT_TRUE(leases.put({task_to_put("a", 2e9)}, kNow + kMinute).is_ok());
  EXPECT_FALSE(leases.take("w", {}, kMinute, kNow)->has_value());
  Leases::Put newer = task_to_put("a", 2e9);
  newer.ranked.task.queued_at = "2030-01-01T00:00:00Z";
  ASSERT_TRUE(leases.put({newer}, kNow).is_ok());
  EXPECT_TRUE(leases.take("w", {}, kMinute, kNow)->has_value());
}

TEST_F(LeasesTest, ADoneTaskStaysDoneUntilTheDriverChanges) {
  Leases leases = open();
  Leases::Put put = task_to_put("a", 1e9);
  ASSERT_TRUE(leases.put({put}, kNow).is_ok());
  const Lease lease = **leases.take("w", {}, kMinute, kNow);
  ASSERT_TRUE(leases.finish(lease.ranked.task.id(), lease.token, "", 0, kNow).is_ok());
  ASSERT_TRUE(leases.put({put}, kNow).is_ok());
  EXPECT_FALSE(leases.take("w", {}, kMinute, kNow)->has_value());
  put.ranked.task.key.driver = "580";
  ASSERT_TRUE(leases.put({put}, kNow).is_ok());
  EXPECT_TRUE(leases.take("w", {}, kMinute, kNow)->has_value());
}

TEST_F(LeasesTest, ADamagedFileIsNamed) {
  ASSERT_TRUE(write_atomic(path_, std::string(5000, 'x')).is_ok());
  const Result<Leases> opened = Leases::open(path_);
  ASSERT_FALSE(opened.is_ok());
  EXPECT_EQ(opened.status().code(), Code::kCorrupt);
  EXPECT_NE(opened.status().message().find("leases.db"), std::string::npos);
}

}  // namespace
}  // namespace purlin::backlog
