// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/range_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace purlin::profile::capture {
namespace {

// What the log holds, a line per event.
class Lines : public RangeLog::Reader {
 public:
  explicit Lines(RangeLog& log) : log_(log) {}
  void thread(std::uint32_t self, std::uint32_t) override {
    now_ = &lines[self];
    last_ = 0;
  }
  void begin_window(std::int64_t) override { *now_ += "| "; }
  void enter(std::int64_t time, std::uint32_t name, std::uint8_t domain) override {
    ordered = ordered && time >= last_;
    last_ = time;
    *now_ += log_.name(name).text + (domain != 0 ? "@" + std::to_string(domain) : "") + "( ";
  }
  void leave(std::int64_t, std::uint8_t domain) override {
    *now_ += domain != 0 ? ")@" + std::to_string(domain) + " " : ") ";
  }
  void end() override { ++ended; }

  std::map<std::uint32_t, std::string> lines;
  int ended = 0;
  bool ordered = true;

 private:
  RangeLog& log_;
  std::string* now_ = nullptr;
  std::int64_t last_ = 0;
};

class RangeLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(log, nullptr);
    log->stop_listening();
    read();  // what tests before left
    log->take_lost();
  }
  void TearDown() override { log->stop_listening(); }
  std::string read() {
    Lines lines(*log);
    log->drain(lines);
    EXPECT_TRUE(lines.ordered);
    std::string all;
    for (const auto& [thread, text] : lines.lines) all += text;
    return all;
  }
  RangeLog* log = RangeLog::instance();
};

TEST_F(RangeLogTest, OnlyWhatIsEnteredWhileSomeoneListens) {
  EXPECT_EQ(log->enter("before", 0), 0);
  log->start_listening();
  EXPECT_EQ(log->enter("a", 0), 1);
  EXPECT_EQ(log->enter("b", 0), 2);
  EXPECT_EQ(log->leave(0), 2);
  EXPECT_EQ(log->leave(0), 1);
  EXPECT_EQ(log->leave(0), 0);  // of "before": not reported
  log->stop_listening();
  log->enter("after", 0);
  log->leave(0);
  EXPECT_EQ(read(), "| a( b( ) ) ");
  EXPECT_EQ(read(), "");
}

TEST_F(RangeLogTest, EachWindowStandsAlone) {
  log->start_listening();
  log->enter("old", 0);
  log->stop_listening();
  log->start_listening();
  log->enter("new", 0);
  log->leave(0);
  log->leave(0);  // of "old"
  log->stop_listening();
  EXPECT_EQ(read(), "| old( | new( ) ");
}

TEST_F(RangeLogTest, DomainsAndMoreEndsThanBeginnings) {
  log->start_listening();
  EXPECT_EQ(log->leave(0), -1);
  log->enter("a", 2);
  log->enter(NameKind::kGemm, "product", kLibraryDomain);
  log->leave(2);
  log->leave(kLibraryDomain);
  EXPECT_EQ(read(), "| a@2( product@1( )@2 )@1 ");
}

TEST_F(RangeLogTest, ThreadsThatEndAreReadToTheirEnd) {
  log->start_listening();
  for (int round = 0; round < 3; ++round) {
    std::thread thread([&] {
      for (int i = 0; i < 3000; ++i) log->enter("x", 0), log->leave(0);
    });
    thread.join();
  }
  Lines lines(*log);
  log->drain(lines);
  EXPECT_EQ(lines.ended, 3);
  std::size_t entered = 0;
  for (const auto& [thread, text] : lines.lines)
    for (const char c : text) entered += c == '(' ? 1 : 0;
  EXPECT_EQ(entered, 9000u);
  EXPECT_EQ(log->take_lost(), 0u);
}

TEST_F(RangeLogTest, WhatDoesNotFitIsLeftOutWhole) {
  log->start_listening();
  const std::uint64_t events = (RangeLog::kMaxChunks + 10) * 1023;
  std::thread thread([&] {
    for (std::uint64_t i = 0; i < events / 2; ++i) log->enter("x", 0), log->leave(0);
  });
  thread.join();
  EXPECT_GT(log->take_lost(), 0u);
  std::string all = read();
  EXPECT_EQ(std::count(all.begin(), all.end(), '('), std::count(all.begin(), all.end(), ')'));
  log->start_listening();
  log->enter("again", 0);
  log->leave(0);
  EXPECT_EQ(read(), "| again( ) ");
}

// In a child, whose log is its own: names stay for good.
TEST_F(RangeLogTest, NamesAreBounded) {
  const pid_t child = fork();
  if (child == 0) {
    RangeLog* own = RangeLog::instance();
    own->start_listening();
    const auto read_own = [&] {
      Lines lines(*own);
      own->drain(lines);
      return lines.lines.empty() ? std::string() : lines.lines.begin()->second;
    };
    for (std::size_t i = 0; i < RangeLog::kMaxNames + 100; ++i) {
      own->enter("aten::mm, sizes = [[" + std::to_string(i) + "]]", 0);
      own->leave(0);
    }
    const bool bare = read_own().find("aten::mm( ") != std::string::npos;  // without its sizes
    own->enter("a name beyond the bound", 0);
    own->leave(0);
    _exit(!bare ? 1 : read_own() != "(other ranges)( ) " ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RangeLogTest, AForkedChildBeginsWithAnEmptyLog) {
  log->start_listening();
  log->enter("parent", 0);
  const pid_t child = fork();
  if (child == 0) {
    RangeLog* own = RangeLog::instance();
    bool right = own != nullptr && own != log && !own->listening();
    own->start_listening();
    own->enter("child", 0);
    own->leave(0);
    Lines lines(*own);
    own->drain(lines);
    right = right && lines.lines.size() == 1 && lines.lines.begin()->second == "| child( ) ";
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  log->leave(0);
  read();
}

// Whether what is left was entered, thread by thread and in order.
class Balance : public RangeLog::Reader {
 public:
  void thread(std::uint32_t, std::uint32_t) override { last_ = depth_ = 0; }
  void begin_window(std::int64_t) override { depth_ = 0; }
  void enter(std::int64_t time, std::uint32_t name, std::uint8_t) override {
    right = right && time >= last_ && name != RangeLog::kNoName;
    last_ = time;
    ++depth_;
    ++entered;
  }
  void leave(std::int64_t time, std::uint8_t) override {
    right = right && time >= last_;
    last_ = time;
    --depth_;
  }
  void end() override {}

  bool right = true;
  std::size_t entered = 0;

 private:
  std::int64_t last_ = 0;
  int depth_ = 0;
};

TEST_F(RangeLogTest, ManyThreadsWhileWindowsComeAndGo) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const std::string op = "aten::op" + std::to_string(t) + ", op_id = 7, sizes = [[1]]";
      while (!stop) {
        log->enter(op, 0);
        log->enter("inner", 0);
        log->leave(0);
        log->leave(0);
      }
    });
  Balance balance;
  for (int i = 0; i < 1'000'000 && balance.entered < 20'000; ++i) {
    log->start_listening();
    std::this_thread::yield();
    log->drain(balance);
    log->stop_listening();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(balance.right);
  EXPECT_GE(balance.entered, 20'000u);
  read();
}

}  // namespace
}  // namespace purlin::profile::capture
