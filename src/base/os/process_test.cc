// SPDX-License-Identifier: Apache-2.0
#include "base/os/process.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace purlin {
namespace {

Process::Options shell(const std::string& script) {
  Process::Options options;
  options.argv = {"sh", "-c", script};
  return options;
}

TEST(Process, CapturesBothStreamsAndTheExit) {
  const Captured got = run_captured(shell("echo out; echo err >&2; exit 3")).value();
  EXPECT_EQ(got.out, "out\n");
  EXPECT_EQ(got.err, "err\n");
  EXPECT_EQ(got.exit.code, 3);
  EXPECT_EQ(got.exit.text(), "exit status 3");
  EXPECT_FALSE(got.exit.ok());
  EXPECT_FALSE(got.timed_out);
}

TEST(Process, ACommandDiesWithACallerThatIsKilled) {
  int ready[2], alive[2];  // the command holds the second one open for as long as it lives
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(alive), 0);
  const pid_t caller = ::fork();
  if (caller == 0) {
    (void)run_captured(
        shell(fmt::format("echo >&{}; exec {}>&-; exec sleep 600", ready[1], ready[1])));
    ::_exit(0);
  }
  ::close(ready[1]);
  ::close(alive[1]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(caller, SIGKILL);
  ::waitpid(caller, nullptr, 0);
  pollfd end{alive[0], POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 30'000), 1) << "the command lives on";
  ::close(ready[0]);
  ::close(alive[0]);
}

TEST(Process, SignalsAreTold) {
  const Captured got = run_captured(shell("kill -SEGV $$")).value();
  EXPECT_EQ(got.exit.signal, SIGSEGV);
  EXPECT_EQ(got.exit.shell_code(), 128 + SIGSEGV);
  EXPECT_NE(got.exit.text().find("signal 11"), std::string::npos);
}

TEST(Process, WhatCannotStartSaysWhy) {
  Process::Options options;
  EXPECT_EQ(Process::start(options).status().code(), Code::kInvalid);
  options.argv = {"no-such-command-of-purlin"};
  EXPECT_EQ(Process::start(options).status().code(), Code::kNotFound);
  const std::string folder = make_temporary_directory("purlin-process").value();
  options.argv = {join_path(folder, "not-executable")};
  ASSERT_TRUE(write_atomic(options.argv[0], "x").is_ok());
  EXPECT_EQ(Process::start(options).status().code(), Code::kIo);
  EXPECT_TRUE(remove_tree(folder).is_ok());
  options.argv = {"true"};
  options.directory = "/no/such/folder";
  EXPECT_FALSE(Process::start(options).is_ok());
}

TEST(Process, EnvironmentIsAddedReplacedAndRemoved) {
  ::setenv("PURLIN_TEST_GONE", "1", 1);
  Process::Options options = shell("echo \"$PURLIN_TEST_NEW,$PURLIN_TEST_GONE,$PWD\"");
  options.environment = {{"PURLIN_TEST_NEW", "a b"}};
  options.unset = {"PURLIN_TEST_GONE"};
  options.directory = "/";
  EXPECT_EQ(run_captured(options)->out, "a b,,/\n");
  ::unsetenv("PURLIN_TEST_GONE");
}

TEST(Process, OutputBeyondTheLimitIsDroppedNotWaitedFor) {
  const Captured got =
      run_captured(shell("head -c 300000 /dev/zero; echo end >&2"), -1, 1000).value();
  EXPECT_EQ(got.out.size(), 1000u);
  EXPECT_TRUE(got.truncated);
  EXPECT_EQ(got.err, "end\n");
}

TEST(Process, TheDeadlineEndsTheWholeGroup) {
  // The grandchild holds the pipe open; only killing the group lets the read end.
  const Captured got = run_captured(shell("sleep 600 & echo $!; wait"), 0.2).value();
  EXPECT_TRUE(got.timed_out);
  EXPECT_EQ(got.exit.signal, SIGKILL);
}

TEST(Process, TheDeadlineHoldsForAChildThatClosedItsStreams) {
  const Captured got = run_captured(shell("exec >&- 2>&-; exec sleep 600"), 0.2).value();
  EXPECT_TRUE(got.timed_out);
}

TEST(Process, DestructionLeavesNoChild) {
  pid_t pid = 0;
  {
    Process process = Process::start(shell("sleep 600")).value();
    pid = process.pid();
    EXPECT_FALSE(process.wait(0).has_value());
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Process, PipesCarryInput) {
  Process::Options options;
  options.argv = {"cat"};
  options.in = options.out = Process::Stream::kPipe;
  Process process = Process::start(options).value();
  ASSERT_EQ(::write(process.in_fd(), "hello", 5), 5);
  process.close_in();
  EXPECT_TRUE(process.wait()->ok());
  char buffer[16];
  EXPECT_EQ(::read(process.out_fd(), buffer, sizeof buffer), 5);
}

}  // namespace
}  // namespace purlin
