// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/idle_device.h"

#include "base/os/process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace purlin::cli {
namespace {

TEST(ForeignProcesses, AreThoseThatAreNotThePools) {
  EXPECT_EQ(foreign_processes({}, {}, 0), 0u);
  EXPECT_EQ(foreign_processes({7, 8}, {}, 0), 2u) << "before a task, each one";
  EXPECT_EQ(foreign_processes({10}, {9, 10, 11}, 1), 0u);
  // The pool has three processes, and one of them is on the device: another one is not hidden.
  EXPECT_EQ(foreign_processes({10, 500}, {9, 10, 11}, 1), 1u);
  EXPECT_EQ(foreign_processes({10, 11, 500, 501}, {9, 10, 11}, 2), 2u);
}

TEST(ForeignProcesses, AreCountedWhereAnotherContainerNumbersThem) {
  EXPECT_EQ(foreign_processes({90001}, {9, 10, 11}, 1), 0u);
  EXPECT_EQ(foreign_processes({90001, 90002}, {9, 10, 11}, 1), 1u);
  EXPECT_EQ(foreign_processes({90001}, {9, 10, 11}, 0), 1u) << "none of the pool has it open";
  EXPECT_EQ(foreign_processes({}, {9, 10, 11}, 2), 0u);
}

TEST(ProcessesBelow, AreTheProcessAndItsDescendants) {
  Process::Options options;
  options.argv = {"sh", "-c", "sleep 30 & sleep 30"};
  Process shell = Process::start(options).value();
  std::vector<int> below;
  for (int i = 0; i < 500 && below.size() < 3; ++i, ::usleep(10'000))
    below = processes_below(shell.pid());
  EXPECT_EQ(below.size(), 3u);
  EXPECT_NE(std::find(below.begin(), below.end(), shell.pid()), below.end());
  shell.kill(SIGKILL);
  for (const int pid : below)
    if (pid != shell.pid()) ::kill(pid, SIGKILL);
  shell.wait(10);
}

}  // namespace
}  // namespace purlin::cli
