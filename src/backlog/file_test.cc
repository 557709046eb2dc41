// SPDX-License-Identifier: Apache-2.0
#include "backlog/file.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <thread>

namespace purlin::backlog {
namespace {

Task retune_of(const std::string& kernel, double ratio, const std::string& driver = "580.1") {
  Task task;
  task.key.kind = "retune";
  task.key.kernel = kernel;
  task.key.shape = "M=512";
  task.key.device = "NVIDIA H200";
  task.key.driver = driver;
  task.ratio = ratio;
  task.queued_at = "2026-11-20T00:00:00Z";
  return task;
}

class BacklogTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = *make_temporary_directory("purlin-backlog"); }
  void TearDown() override { (void)remove_tree(folder_); }
  std::string folder_;
};

TEST_F(BacklogTest, TheSameFindingIsOneTask) {
  EXPECT_TRUE(open_tasks(join_path(folder_, "none"))->empty());
  ASSERT_TRUE(queue(folder_, {retune_of("axpy", 1.05), retune_of("gemm", 1.1)}).is_ok());
  Task later = retune_of("axpy", 1.3);
  later.queued_at = "2026-11-21T00:00:00Z";
  ASSERT_TRUE(queue(folder_, {later}).is_ok());
  const std::vector<Task> tasks = *open_tasks(folder_);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].key.kernel, "axpy");
  EXPECT_EQ(tasks[0].seen, 2);
  EXPECT_EQ(tasks[0].ratio, 1.3);
  EXPECT_EQ(tasks[0].first_queued_at, "2026-11-20T00:00:00Z");
  EXPECT_EQ(tasks[0].queued_at, "2026-11-21T00:00:00Z");
  // On another driver it is another finding.
  ASSERT_TRUE(queue(folder_, {retune_of("axpy", 1.3, "590.1")}).is_ok());
  EXPECT_EQ(open_tasks(folder_)->size(), 3u);
}

TEST_F(BacklogTest, ATaskThatIsDoneIsGoneUntilItIsFoundAgain) {
  ASSERT_TRUE(queue(folder_, {retune_of("gemm", 1.1)}).is_ok());
  EXPECT_EQ(finish(folder_, "nonesuch").code(), Code::kNotFound);
  ASSERT_TRUE(finish(folder_, retune_of("gemm", 1.1).id()).is_ok());
  EXPECT_TRUE(open_tasks(folder_)->empty());
  ASSERT_TRUE(queue(folder_, {retune_of("gemm", 1.1)}).is_ok());
  EXPECT_EQ(open_tasks(folder_)->at(0).seen, 1);
}

TEST_F(BacklogTest, ADamagedLineIsNamed) {
  ASSERT_TRUE(queue(folder_, {retune_of("gemm", 1.1)}).is_ok());
  const std::string whole = *read_file(backlog_path(folder_));
  ASSERT_TRUE(write_atomic(backlog_path(folder_), whole + "{bad\n").is_ok());
  const Status status = open_tasks(folder_).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("backlog.jsonl, line 2"), std::string::npos) << status.message();
  ASSERT_TRUE(write_atomic(backlog_path(folder_), whole + "{bad").is_ok());  // being written
  EXPECT_EQ(open_tasks(folder_)->size(), 1u);
}

TEST_F(BacklogTest, KeepsTheFactsOfATaskAndReadsAFileWithoutThem) {
  Task task = retune_of("gemm", 1.1);
  task.launches = 1000;
  task.launch_ns = 6e6;
  task.headroom = 0.4;
  ASSERT_TRUE(queue(folder_, {task, retune_of("axpy", 1.1)}).is_ok());
  const std::vector<Task> tasks = *open_tasks(folder_);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].launches, 1000u);
  EXPECT_EQ(tasks[0].launch_ns, 6e6);
  EXPECT_EQ(tasks[0].headroom, 0.4);
  EXPECT_EQ(tasks[1].launch_ns, 0);
  EXPECT_FALSE(tasks[1].headroom.has_value());
}

TEST_F(BacklogTest, WritersAtOnceLoseNothing) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 5; ++i)
        EXPECT_TRUE(queue(folder_, {retune_of("k" + std::to_string(writer * 5 + i), 1.1)}).is_ok());
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(open_tasks(folder_)->size(), 20u);
}

}  // namespace
}  // namespace purlin::backlog
