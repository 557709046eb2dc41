// SPDX-License-Identifier: Apache-2.0
// What a power cut leaves of a backlog: at each sync and rename, what was not synced is dropped,
// the tasks are read again and compared with what was acknowledged.
#include "backlog/file.h"
#include "backlog/leases.h"
#include "base/file_fault_calls_testing.h"
#include "base/files.h"

#include <gtest/gtest.h>

#include <set>

namespace purlin::backlog {
namespace {

constexpr std::int64_t kFaultsNow = 1'790'000'000'000'000'000, kFaultsMinute = 60'000'000'000;

Task task_to_lose(int n) {
  Task task;
  task.key.kind = "retune";
  task.key.kernel = "kernel" + std::to_string(n);
  task.queued_at = "2026-11-20T00:00:00Z";
  task.ratio = 1.1;
  return task;
}

class BacklogFaults : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-backlog-faults").value();
    folder_ = join_path(root_, "cache");
    ASSERT_TRUE(make_directories_durably(folder_).is_ok());
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  template <typename Work, typename Check>
  int cut_everywhere(const Work& work, const Check& check) {
    int cuts = 0;
    DroppingDisk disk(folder_);
    disk.at_each_point = [&] {
      const std::string copy = join_path(root_, "cut" + std::to_string(++cuts));
      disk.cut_power(copy);
      check(copy, "power cut " + std::to_string(cuts));
      EXPECT_TRUE(remove_tree(copy).is_ok());
    };
    work();
    disk.at_each_point();
    return cuts;
  }
  std::string root_, folder_;
};

TEST_F(BacklogFaults, QueuedAndFinishedTasksSurviveAPowerCut) {
  std::set<std::string> open, maybe;
  const auto change = [&](const Task& task, bool queued) {
    maybe = {task.key.kernel};
    ASSERT_TRUE((queued ? queue(folder_, {task}) : finish(folder_, task.id())).is_ok());
    queued ? (void)open.insert(task.key.kernel) : (void)open.erase(task.key.kernel);
    maybe.clear();
  };
  const auto work = [&] {
    for (int n = 0; n < 4; ++n) {
      change(task_to_lose(n), true);
      if (n % 2 == 1) change(task_to_lose(n), false);
    }
  };
  const auto check = [&](const std::string& copy, const std::string& where) {
    const Result<std::vector<Task>> tasks = open_tasks(copy);
    ASSERT_TRUE(tasks.is_ok()) << where << ": " << tasks.status().message();
    std::set<std::string> found, expected;
    for (const Task& task : *tasks)
      if (maybe.count(task.key.kernel) == 0) found.insert(task.key.kernel);
    for (const std::string& kernel : open)
      if (maybe.count(kernel) == 0) expected.insert(kernel);
    EXPECT_EQ(found, expected) << where;
  };
  EXPECT_GT(cut_everywhere(work, check), 8);
}

TEST_F(BacklogFaults, ALeaseThatWasGivenIsKeptAfterAPowerCut) {
  std::int64_t token = 0;
  std::set<std::string> done;
  const auto work = [&] {
    Leases leases = Leases::open(join_path(folder_, "leases.db")).value();
    for (int n = 0; n < 3; ++n) {
      Leases::Put put;
      put.ranked.task = task_to_lose(n);
      ASSERT_TRUE(leases.put({put}, kFaultsNow).is_ok());
      const auto lease = leases.take("w", {}, kFaultsMinute, kFaultsNow);
      ASSERT_TRUE(lease.is_ok() && lease->has_value());
      token = (*lease)->token;
      const std::string id = (*lease)->ranked.task.id();
      ASSERT_TRUE(leases.finish(id, token, "won", 1, kFaultsNow).is_ok());
      done.insert(id);
    }
  };
  const auto check = [&](const std::string& copy, const std::string& where) {
    Result<Leases> leases = Leases::open(join_path(copy, "leases.db"));
    ASSERT_TRUE(leases.is_ok()) << where << ": " << leases.status().message();
    std::set<std::string> found;
    const Result<std::vector<SharedTask>> tasks = leases->list(kFaultsNow);
    ASSERT_TRUE(tasks.is_ok()) << where << ": " << tasks.status().message();
    for (const SharedTask& task : *tasks)
      if (task.state == TaskState::kDone) found.insert(task.ranked.task.id());
    for (const std::string& id : done) EXPECT_EQ(found.count(id), 1U) << where << ": lost";
    // Tokens go on counting up: an old worker is never taken for a new one.
    Leases::Put put;
    put.ranked.task = task_to_lose(99);
    ASSERT_TRUE(leases->put({put}, kFaultsNow).is_ok());
    const auto lease = leases->take("other", {}, kFaultsMinute, kFaultsNow + 2 * kFaultsMinute);
    ASSERT_TRUE(lease.is_ok() && lease->has_value()) << where;
    EXPECT_GT((*lease)->token, token) << where;
  };
  EXPECT_GT(cut_everywhere(work, check), 20);
}

}  // namespace
}  // namespace purlin::backlog
