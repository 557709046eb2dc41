// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/live_slots.h"

#include "base/files.h"
#include "store/sketch_bytes.h"
#include "store/testing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace purlin::store {
namespace {

constexpr double kLaunchesOfBatch = 8 * 3 * 2 * 5;

class LiveStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-live").value();
    ASSERT_TRUE(init_store(root_).is_ok());
    store_ = open_store(root_).value();
    reader_ = store_->reader().value();
  }
  void TearDown() override {
    reader_.reset();
    store_.reset();
    ASSERT_TRUE(remove_tree(root_).is_ok());
  }
  void put(const std::string& node, std::int64_t begin_ns) {
    const HashedBatch one = hashed(fleet_.batch(node, ++sequence_, begin_ns));
    EXPECT_EQ(store_->ingest(one.hash, one.batch).value(), Ingest::kStored);
  }
  // Of hours in memory and of the files.
  void expect_same_answers(const Filter& filter) {
    const std::unique_ptr<Reader> files = open_reader(root_).value();
    const TopKernels live = reader_->top(filter, 3).value(), file = files->top(filter, 3).value();
    EXPECT_EQ(live.launches, file.launches);
    EXPECT_EQ(live.sum_ns, file.sum_ns);
    EXPECT_EQ(live.roles_ns, file.roles_ns);
    EXPECT_EQ(live.kernels_in_all, file.kernels_in_all);
    ASSERT_EQ(live.kernels.size(), file.kernels.size());
    for (std::size_t i = 0; i < live.kernels.size(); ++i) {
      EXPECT_EQ(live.kernels[i].kernel, file.kernels[i].kernel);
      EXPECT_EQ(live.kernels[i].p50_ns, file.kernels[i].p50_ns);
      EXPECT_EQ(live.kernels[i].recorded, file.kernels[i].recorded);
    }
    const std::vector<Dimension> by = {Dimension::kShape, Dimension::kBuild};
    const std::vector<Cell> a = reader_->cells(filter, by, Step::kHour).value(),
                            b = files->cells(filter, by, Step::kHour).value();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].begin_ns, b[i].begin_ns);
      EXPECT_EQ(a[i].values, b[i].values);
      EXPECT_EQ(a[i].duration.buckets(), b[i].duration.buckets());
      EXPECT_EQ(a[i].duration.min_ns(), b[i].duration.min_ns());
    }
    for (const Dimension dimension : {Dimension::kKernel, Dimension::kBuild, Dimension::kNode})
      EXPECT_EQ(reader_->values(dimension, filter).value(),
                files->values(dimension, filter).value());
  }

  std::string root_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Reader> reader_;
  MadeUpFleet fleet_;
  std::uint64_t sequence_ = 0;
};

TEST_F(LiveStoreTest, AnswersAreThoseOfTheFilesAfterEachCommit) {
  Filter build, day;
  build[Dimension::kBuild] = "b2";
  day.begin_ns = kMadeUpDayNs, day.end_ns = kMadeUpDayNs + kDayNs;
  for (int i = 0; i < 12; ++i) {
    if (i == 4) fleet_.build = "b2";
    if (i == 8) fleet_.model = "NVIDIA H100", fleet_.kernels = 12;
    put(fmt::format("n{}", i % 3), kMadeUpDayNs + i % 5 * kHourNs / 2);
    if (i % 3 == 2) continue;  // some commits before the next question
    expect_same_answers(day);
    expect_same_answers(build);
  }
  // Hours that are removed, and a store that is opened again.
  put("n1", kMadeUpDayNs + kDayNs);
  ASSERT_TRUE(store_->expire(kMadeUpDayNs + kDayNs).is_ok());
  expect_same_answers(day);
  reader_.reset();
  store_.reset();
  store_ = open_store(root_).value();
  reader_ = store_->reader().value();
  expect_same_answers({});
}

TEST_F(LiveStoreTest, AQuestionSeesWholeCommitsWhileBatchesArrive) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> asking;
  for (int i = 0; i < 2; ++i)
    asking.emplace_back([&] {
      const std::unique_ptr<Reader> own = store_->reader().value();
      double before = 0;
      while (!stop) {
        const double launches = own->top({}, 2)->launches;
        EXPECT_EQ(std::fmod(launches, kLaunchesOfBatch), 0);
        EXPECT_GE(launches, before);
        before = launches;
      }
    });
  for (int i = 0; i < 40; ++i) {
    if (i % 10 == 0) fleet_.build = fmt::format("b{}", i);
    put(fmt::format("n{}", i % 4), kMadeUpDayNs);
    EXPECT_EQ(reader_->top({}, 1)->launches, kLaunchesOfBatch * (i + 1)) << "what was acknowledged";
  }
  stop = true;
  for (std::thread& thread : asking) thread.join();
}

class LiveSlotsTest : public testing::Test {
 protected:
  Result<LiveSlots::Table> load() {
    ++loads_;
    LiveSlots::Table table(revision_);
    table.add({1}, total_, total_, sketch_bytes(of(total_)));
    return table;
  }
  static Sketch of(double launches) {
    Sketch sketch;
    sketch.add(1000, launches);
    return sketch;
  }
  // What a question is answered; -1: it reads the file.
  double ask(LiveSlots& live) {
    double launches = 0;
    const Result<bool> used = live.use(
        "day", 3, [this] { return load(); },
        [&](const LiveSlots::Table& table) {
          for (const LiveSlots::Row& row : table.rows()) launches += row.launches;
          return Status::ok();
        });
    EXPECT_TRUE(used.is_ok());
    return *used ? launches : -1;
  }
  void commit(LiveSlots& live, bool collected) {
    ++revision_;
    ++total_;
    std::vector<LiveSlots::Added> rows = {{{1}, 1, 1, of(1)}};
    live.add("day", 3, revision_, collected ? std::optional(rows) : std::nullopt);
  }
  int loads_ = 0;
  std::int64_t revision_ = 7;
  double total_ = 5;
};

TEST_F(LiveSlotsTest, LoadsOnceAndAgainWhereACommitIsMissing) {
  LiveSlots live;
  EXPECT_TRUE(live.known("day").empty());
  EXPECT_EQ(ask(live), 5);
  EXPECT_EQ(live.known("day"), std::set<int>{3});
  commit(live, true);
  commit(live, true);
  EXPECT_EQ(ask(live), 7);
  EXPECT_EQ(loads_, 1);
  commit(live, false);
  EXPECT_EQ(ask(live), 8);
  EXPECT_EQ(loads_, 2);
  ++revision_, ++total_;  // one that nothing states
  commit(live, true);
  EXPECT_EQ(ask(live), 10);
  EXPECT_EQ(loads_, 3);
  live.forget("day");
  EXPECT_EQ(ask(live), 10);
  EXPECT_EQ(loads_, 4);
}

TEST_F(LiveSlotsTest, AnHourWithoutRoomIsReadFromItsFile) {
  LiveSlots live(100);
  EXPECT_EQ(ask(live), -1);
  EXPECT_EQ(ask(live), -1);
  EXPECT_EQ(loads_, 1);
  EXPECT_TRUE(live.known("day").empty()) << "its writer collects nothing";
}

}  // namespace
}  // namespace purlin::store
