// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/cost_record.h"

#include "profile/capture/sampling/cost_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace purlin::profile::capture {
namespace {

const std::string kIdentity = "program /bin/train\ndevice H200, 580\ncapture governed\n";

CostRecord record(double presence, double rest, double budget = 0.01) {
  CostRecord result;
  result.identity = kIdentity;
  result.cupti = 26;
  result.budget = budget;
  result.presence = presence;
  result.rest = rest;
  result.runs = 1;
  result.written_s = 1'800'000'000;
  return result;
}

class CostFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string text = ::testing::TempDir() + "purlin-cost-XXXXXX";
    folder_ = ::mkdtemp(text.data());
    path_ = folder_ + "/state/capture-cost/0123456789abcdef";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void put(const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    std::ofstream(path_, std::ios::binary) << text;
  }
  CostFile::State state() { return read_cost_record(path_, kIdentity).state; }

  std::string folder_, path_;
};

TEST(OneIn, IsTheLeastThatHoldsTheBudget) {
  EXPECT_EQ(one_in(record(0, 0), 0.01), 1);
  EXPECT_EQ(one_in(record(0.004, 0.006), 0.01), 1) << "held by every run";
  EXPECT_EQ(one_in(record(0.0101, 0), 0.01), 2);
  EXPECT_EQ(one_in(record(0.025, 0), 0.01), 4) << "with half of it to spare";
  EXPECT_EQ(one_in(record(0.027, 0), 0.01), 5);
  EXPECT_EQ(one_in(record(0.025, 0.015), 0.01), 6);
  EXPECT_EQ(one_in(record(9, 0), 0.01), kMaxRunsPerCapture) << "never out of sight for good";
  for (double share = 0.0003; share < 0.6; share *= 1.1) {
    const int n = one_in(record(share, 0), 0.01);
    EXPECT_LE(share / n, 0.01 * 1.001);
    EXPECT_TRUE(n == 1 || 1.5 * share / (n - 1) > 0.01) << "fewer runs would have done";
  }
}

TEST(OneIn, FollowsTheBudget) {
  // Presence is what it is; what is spent on records goes with the budget.
  EXPECT_EQ(one_in(record(0.02, 0.01, 0.01), 0.01), 5);
  EXPECT_EQ(one_in(record(0.02, 0.01, 0.01), 0.02), 3);
  EXPECT_EQ(one_in(record(0.02, 0.01, 0.01), 0.005), 8);
  CostRecord full = record(0, 0.2);
  full.governed = false;
  EXPECT_EQ(one_in(full, 0.02), 15);
}

TEST(Blend, OlderRunsFade) {
  CostRecord known = blend({}, record(0.02, 0));
  EXPECT_EQ(known.runs, 1);
  known = blend(known, record(0.04, 0));
  EXPECT_DOUBLE_EQ(known.presence, 0.03);
  for (int i = 0; i < 40; ++i) known = blend(known, record(0.001, 0));
  EXPECT_NEAR(known.presence, 0.001, 1e-5) << "a program that changed";
  EXPECT_EQ(known.runs, 42);
}

TEST(Blend, AnotherCuptiBeginsAnew) {
  CostRecord other = record(0.002, 0);
  other.cupti = 27;
  const CostRecord after = blend(record(0.05, 0), other);
  EXPECT_DOUBLE_EQ(after.presence, 0.002);
  EXPECT_EQ(after.runs, 1);
}

TEST(Blend, RestIsOfTheBudgetItWasSpentUnder) {
  const CostRecord after = blend(record(0, 0.01, 0.01), record(0, 0.02, 0.02));
  EXPECT_DOUBLE_EQ(after.rest, 0.02);
  EXPECT_DOUBLE_EQ(after.budget, 0.02);
}

TEST(CostText, ReadsWhatItWrites) {
  const CostRecord before = record(0.0271, 0.0013, 0.005);
  const auto after = parse_cost_record(to_text(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(to_text(*after), to_text(before));
  EXPECT_EQ(after->identity, kIdentity);
  EXPECT_NEAR(after->presence, 0.0271, 1e-9);
}

TEST(CostText, NothingElseIsOne) {
  const std::string good = to_text(record(0.02, 0.001));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parse_cost_record(good.substr(0, size))) << size << ": torn";
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& text :
       {changed("cost/3", "cost/2"), changed("ended 0", "ended 2"),
        changed("launch_bound 0", "launch_bound 2"), changed("cupti 26", "cupti -1"),
        changed("cupti 26", "cupti 4294967296"), changed("budget_ppm 10000", "budget_ppm 0"),
        changed("presence_ppm 20000", "presence_ppm 99999999999999999999"),
        changed("presence_ppm 20000", "presence_ppm nan"),
        changed("presence_ppm 20000", "presence_ppm  20000"), changed("runs 1", "runs"),
        changed("governed 1", "governed 2"), good + "end\n", good + std::string(kMaxCostBytes, 'x'),
        std::string(100, '\0')})
    EXPECT_FALSE(parse_cost_record(text)) << text.substr(0, 300);
}

TEST_F(CostFiles, ComesBack) {
  EXPECT_EQ(state(), CostFile::State::kAbsent);
  ASSERT_EQ(write_cost_record(path_, record(0.02, 0.003)), "");
  const CostFile file = read_cost_record(path_, kIdentity);
  ASSERT_EQ(file.state, CostFile::State::kRead);
  EXPECT_NEAR(file.record.presence, 0.02, 1e-9);
}

TEST_F(CostFiles, WhatCannotBeUsedSaysWhy) {
  for (const std::string& text : {std::string(), std::string("purlin-cost/9\n"),
                                  std::string(1 << 20, 'a'), std::string(5000, '\n')}) {
    put(text);
    const CostFile file = read_cost_record(path_, kIdentity);
    EXPECT_EQ(file.state, CostFile::State::kUnusable);
    EXPECT_NE(file.reason.find(path_), std::string::npos);
  }
  CostRecord other = record(0.02, 0);
  other.identity = "program /bin/other\ndevice H200, 580\ncapture governed\n";
  put(to_text(other));
  EXPECT_EQ(state(), CostFile::State::kUnusable) << "of a program with the same number";
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(state(), CostFile::State::kUnusable) << "nobody writes to it: must not wait";
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(state(), CostFile::State::kUnusable);
}

TEST_F(CostFiles, WhereNothingCanBeWrittenThatIsSaid) {
  std::ofstream(folder_ + "/state") << "a file where a folder should be";
  EXPECT_NE(write_cost_record(path_, record(0.02, 0)).find(path_), std::string::npos);
  EXPECT_EQ(state(), CostFile::State::kAbsent);
}

// Ranks that end at once, and readers meanwhile: a record is always one of those written.
TEST_F(CostFiles, ManyWriters) {
  std::vector<std::thread> threads;
  std::atomic<int> torn = 0, kept = 0;
  for (int writer = 0; writer < 8; ++writer)
    threads.emplace_back([&, writer] {
      for (int i = 0; i < 60; ++i) {
        // Writers may find every name taken for a moment: that is one record less.
        kept += write_cost_record(path_, record(0.001 * (writer + 1), 0.0001 * i)).empty();
        torn += state() == CostFile::State::kUnusable;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(kept, 100);
  EXPECT_EQ(state(), CostFile::State::kRead);
  const auto left = std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path());
  EXPECT_EQ(std::distance(begin(left), end(left)), 1) << "temporary files";
}

// Writers that were killed leave a bounded number of files, which later ones use again.
TEST_F(CostFiles, KilledWriters) {
  put("");
  for (int i = 0; i < 16; ++i) {
    const std::string left = path_ + '~' + std::to_string(i);
    std::ofstream(left) << "half a rec";
    std::filesystem::last_write_time(
        left, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  ASSERT_EQ(write_cost_record(path_, record(0.02, 0)), "");
  EXPECT_EQ(state(), CostFile::State::kRead);
}

TEST_F(CostFiles, AProcessCountsOnceHoweverOftenItWrites) {
  ASSERT_EQ(write_cost_record(path_, record(0.04, 0)), "");
  CostKeeper keeper(path_, kIdentity);
  EXPECT_FALSE(keeper.due(1'000'000'000));
  EXPECT_TRUE(keeper.due(2'000'000'000));
  ASSERT_EQ(keeper.keep(record(0.01, 0), 2'000'000'000), "");
  EXPECT_FALSE(keeper.due(3'000'000'000)) << "only when its age has doubled";
  ASSERT_EQ(keeper.keep(record(0.02, 0), 4'000'000'000), "");
  CostRecord there = read_cost_record(path_, kIdentity).record;
  EXPECT_NEAR(there.presence, 0.03, 1e-9);
  EXPECT_EQ(there.runs, 2);
  // What another process wrote meanwhile is what the next is added to.
  ASSERT_EQ(write_cost_record(path_, record(0.1, 0)), "");
  ASSERT_EQ(keeper.keep(record(0.02, 0), 8'000'000'000), "");
  there = read_cost_record(path_, kIdentity).record;
  EXPECT_NEAR(there.presence, 0.06, 1e-9);
  // A damaged one is replaced.
  put("purlin-cost/3\nprogram");
  ASSERT_EQ(keeper.keep(record(0.02, 0), 16'000'000'000), "");
  EXPECT_EQ(state(), CostFile::State::kRead);
}

// Drivers come and go, and each has separate records.
TEST_F(CostFiles, TheOldestMakeRoom) {
  ASSERT_EQ(write_cost_record(path_, record(0.02, 0)), "");
  const auto folder = std::filesystem::path(path_).parent_path();
  const auto now = std::filesystem::file_time_type::clock::now();
  const auto name = [&](int number) {
    char text[32];
    std::snprintf(text, sizeof text, "00000000000000%02x", static_cast<unsigned>(number));
    return folder / text;
  };
  for (int i = 0; i < 40; ++i) {
    std::ofstream(name(i)) << "a record";
    std::filesystem::last_write_time(name(i), now - std::chrono::hours(i + 1));
  }
  std::filesystem::last_write_time(path_, now - std::chrono::hours(1000));
  std::ofstream(folder / "notes.txt") << "somebody's";
  std::ofstream(folder / "0000000000000000.bak") << "somebody's";
  bound_cost_records(path_, 41);
  EXPECT_TRUE(std::filesystem::exists(name(39))) << "there was room";
  bound_cost_records(path_, 40);  // of which thirty stay
  EXPECT_EQ(state(), CostFile::State::kRead) << "the one that was added";
  for (int i = 0; i < 40; ++i) EXPECT_EQ(std::filesystem::exists(name(i)), i < 29) << i;
  EXPECT_TRUE(std::filesystem::exists(folder / "notes.txt"));
  EXPECT_TRUE(std::filesystem::exists(folder / "0000000000000000.bak"));
  bound_cost_records("/nowhere/at all", 1);
}

// By the keeper itself, where its record is a new one.
TEST_F(CostFiles, ANewRecordMakesRoom) {
  const auto folder = std::filesystem::path(path_).parent_path();
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < kMaxCostRecords; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%016zx", i);
    std::ofstream(folder / text) << "a record";
  }
  const auto count = [&] {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  };
  CostKeeper keeper(path_, kIdentity);
  ASSERT_EQ(keeper.keep(record(0.02, 0), 2'000'000'000), "");
  EXPECT_EQ(count(), kMaxCostRecords - kMaxCostRecords / 4);
  EXPECT_EQ(state(), CostFile::State::kRead);
}

}  // namespace
}  // namespace purlin::profile::capture
