// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/counter_lock.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

namespace purlin::fleet {
namespace {

class CounterLockTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.folder = make_temporary_directory("purlin-counters").value();
    options_.wait_s = 0;
    command("true");
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(options_.folder).is_ok()); }
  // A dcgmi that notes what it was asked for.
  void command(const std::string& end) {
    const std::string path = join_path(options_.folder, "dcgmi");
    ASSERT_TRUE(write_atomic(path, "#!/bin/sh\necho $1 >> " + log() + "\n" + end + "\n").is_ok());
    ::chmod(path.c_str(), 0700);
    options_.pause = {path, "pause"};
    options_.resume = {path, "resume"};
  }
  std::string log() const { return join_path(options_.folder, "log"); }
  std::string calls() const { return read_file(log()).value_or(""); }
  CounterLockOptions options_;
};

TEST_F(CounterLockTest, PausesDcgmWhileItIsHeld) {
  {
    const Result<CounterLock> lock = CounterLock::acquire(options_);
    ASSERT_TRUE(lock.is_ok()) << lock.status().message();
    EXPECT_EQ(calls(), "pause\n");
    EXPECT_EQ(CounterLock::acquire(options_).status().code(), Code::kUnavailable);
    EXPECT_FALSE(CounterLock::resume_abandoned(options_).value()) << "its holder lives";
  }
  EXPECT_EQ(calls(), "pause\nresume\n");
  EXPECT_FALSE(CounterLock::resume_abandoned(options_).value());
}

TEST_F(CounterLockTest, WhatAKilledHolderPausedIsResumed) {
  ASSERT_TRUE(write_atomic(join_path(options_.folder, "gpu-counters.paused"), "").is_ok());
  EXPECT_TRUE(CounterLock::resume_abandoned(options_).value());
  EXPECT_EQ(calls(), "resume\n");
  EXPECT_FALSE(CounterLock::resume_abandoned(options_).value());
}

TEST_F(CounterLockTest, NeedsNoDcgmAndSaysWhereItFails) {
  options_.pause = {"/nonexistent/dcgmi"};
  EXPECT_TRUE(CounterLock::acquire(options_).is_ok());
  EXPECT_EQ(calls(), "");
  command("echo busy >&2; exit 3");
  const Status status = CounterLock::acquire(options_).status();
  EXPECT_EQ(status.code(), Code::kFailed);
  EXPECT_NE(status.message().find("busy"), std::string::npos) << status.message();
  command("true");
  EXPECT_TRUE(CounterLock::acquire(options_).is_ok()) << "nothing was left";
}

}  // namespace
}  // namespace purlin::fleet
