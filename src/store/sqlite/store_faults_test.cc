// SPDX-License-Identifier: Apache-2.0
// An SQLite store on a disk that forgets what was not synced, on one whose calls fail, and under a
// process that is killed. What was acknowledged is there, and nothing counts twice. Damage of one
// day is named and hides no other day.
#include "base/file_fault_calls_testing.h"
#include "base/file_faults_testing.h"
#include "base/files.h"
#include "store/testing.h"

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace purlin::store {
namespace {

class StoreFaults : public testing::Test {
 protected:
  void SetUp() override {
    root_ = make_temporary_directory("purlin-store-faults").value();
    target_ = root_ + "/store";
    fleet_.kernels = 2, fleet_.shapes = 1, fleet_.gpus = 1;
    ASSERT_TRUE(init_store(target_).is_ok());
  }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }

  // The n-th batch is the same each time. Every third spans midnight.
  HashedBatch batch(std::uint64_t n) {
    fleet_.random.seed(n);
    Batch batch = fleet_.batch("n1", n, kMadeUpDayNs + kDayNs - 5'000'000'000);
    batch.rows[0].hour_ns += n % 3 == 0 ? kHourNs : 0;
    return hashed(std::move(batch));
  }
  static double launches(const HashedBatch& batch) {
    double sum = 0;
    for (const BatchRow& row : batch.batch.rows) sum += row.duration.count();
    return sum;
  }
  // Whether a store has these batches, and each once: they all are duplicates, and the sum fits.
  void expect_holds(const std::string& target, const std::set<std::uint64_t>& acknowledged,
                    std::uint64_t sent, const std::string& where) {
    Result<std::unique_ptr<Store>> store = open_store(target);
    ASSERT_TRUE(store.is_ok()) << where << ": " << store.status().message();
    const StoreCheck checked = (*store)->check().value();
    EXPECT_FALSE(checked.damaged()) << where << ": " << checked.findings[0].what;
    for (const std::uint64_t n : acknowledged) {
      const HashedBatch again = batch(n);
      const Result<Ingest> result = (*store)->ingest(again.hash, again.batch);
      ASSERT_TRUE(result.is_ok()) << where << ": " << result.status().message();
      EXPECT_EQ(*result, Ingest::kDuplicate) << where << ": batch " << n << " is lost";
    }
    double sum = 0;
    for (std::uint64_t n = 0; n < sent; ++n) {
      const HashedBatch again = batch(n);
      sum += launches(again);
      EXPECT_TRUE((*store)->ingest(again.hash, again.batch).is_ok()) << where;
    }
    EXPECT_EQ((*store)->top({}, 1)->launches, sum) << where;
  }

  std::string root_, target_;
  MadeUpFleet fleet_;
};

TEST_F(StoreFaults, APowerCutLosesNothingThatWasAcknowledged) {
  std::set<std::uint64_t> acknowledged;
  std::uint64_t sent = 0;
  int cut = 0;
  {
    DroppingDisk disk(target_);
    bool busy = false;
    disk.at_each_point = [&] {
      if (busy) return;
      busy = true;
      const std::string copy = fmt::format("{}/cut{}", root_, ++cut);
      disk.cut_power(copy);
      expect_holds(copy, acknowledged, sent, fmt::format("power cut {}", cut));
      EXPECT_TRUE(remove_tree(copy).is_ok());
      busy = false;
    };
    const std::unique_ptr<Store> store = open_store(target_).value();
    for (std::uint64_t n = 0; n < 4; ++n) {
      sent = n + 1;
      const HashedBatch one = batch(n);
      ASSERT_EQ(store->ingest(one.hash, one.batch).value(), Ingest::kStored);
      acknowledged.insert(n);
    }
    ASSERT_TRUE(store->compact().is_ok());
  }
  EXPECT_GT(cut, 15);
  expect_holds(target_, acknowledged, sent, "in the end");
}

TEST_F(StoreFaults, AFailingCallIsAnErrorAndARetryCountsOnce) {
  // EIO at each second call, ENOSPC at others.
  for (const auto& [code, step] : {std::pair(EIO, 2), std::pair(ENOSPC, 7)}) {
    int failures = 0;
    for (int at = step / 2;; at += step) {
      const std::string target = fmt::format("{}/fail{}-{}", root_, code, at);
      ASSERT_TRUE(init_store(target).is_ok());
      std::set<std::uint64_t> acknowledged;
      bool struck = false;
      {
        std::unique_ptr<Store> store = open_store(target).value();
        FileFaults faults;
        faults.fail_at = at, faults.fail_with = code;
        for (std::uint64_t n = 0; n < 2; ++n) {
          const HashedBatch one = batch(n);
          const Result<Ingest> result = store->ingest(one.hash, one.batch);
          if (result.is_ok()) acknowledged.insert(n);
          failures += result.is_ok() ? 0 : 1;
        }
        struck = !faults.struck.empty();
        store.reset();
      }
      expect_holds(target, acknowledged, 2, fmt::format("call {} fails with {}", at, code));
      ASSERT_TRUE(remove_tree(target).is_ok());
      if (!struck || HasFailure()) break;
    }
    EXPECT_GT(failures, 5);
  }
}

// A child stores batches and says which; it is killed in between.
TEST_F(StoreFaults, KillsLoseAndDoubleNothing) {
  std::set<std::uint64_t> acknowledged;
  std::uint64_t next = 0;
  std::mt19937_64 random(3);
  for (int round = 0; round < 25; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      Result<std::unique_ptr<Store>> store = open_store(target_);
      for (std::uint64_t n = next; store.is_ok(); ++n) {
        const HashedBatch one = batch(n);
        if (!(*store)->ingest(one.hash, one.batch).is_ok()) ::_exit(1);
        if (::write(pipe[1], &n, sizeof n) != sizeof n) ::_exit(1);
      }
      ::_exit(1);
    }
    ::close(pipe[1]);
    // Somewhere in the work after so many answers.
    std::uint64_t n = 0;
    const auto note = [&] {
      const bool read = ::read(pipe[0], &n, sizeof n) == sizeof n;
      if (read) acknowledged.insert(n), next = n + 1;
      return read;
    };
    for (std::uint64_t answers = 1 + random() % 3; answers > 0 && note(); --answers) {
    }
    ::usleep(static_cast<useconds_t>(random() % 15'000));
    ::kill(child, SIGKILL);
    while (note()) {
    }
    ::close(pipe[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round;
  }
  EXPECT_GE(acknowledged.size(), 25U);
  expect_holds(target_, acknowledged, next + 1, "after the kills");
}

TEST_F(StoreFaults, DamageOfADayIsNamedAndHidesNoOtherDay) {
  const auto path = [&](const char* day) { return target_ + "/hours/" + day + ".sqlite"; };
  fleet_.kernels = 60, fleet_.shapes = 5;
  {
    const std::unique_ptr<Store> store = open_store(target_).value();
    for (int day = 0; day < 2; ++day) {
      const HashedBatch one =
          hashed(fleet_.batch("n1", static_cast<std::uint64_t>(day), kMadeUpDayNs + day * kDayNs));
      ASSERT_EQ(store->ingest(one.hash, one.batch).value(), Ingest::kStored);
    }
  }
  std::string bytes = read_file(path("2024-02-20")).value();
  for (std::size_t i = 4096; i < bytes.size(); i += 64)
    bytes[i] = static_cast<char>(bytes[i] ^ 0x5a);
  ASSERT_TRUE(write_atomic(path("2024-02-20"), bytes).is_ok());

  const std::unique_ptr<Store> store = open_store(target_).value();
  Filter intact;
  intact.begin_ns = kMadeUpDayNs + kDayNs;
  EXPECT_EQ(store->top(intact, 1)->launches, 60 * 5 * 5);
  const Status both = store->top({}, 1).status();
  EXPECT_EQ(both.code(), Code::kCorrupt);
  EXPECT_NE(both.message().find("2024-02-20.sqlite"), std::string::npos) << both.message();
  const StoreCheck checked = store->check().value();
  EXPECT_TRUE(checked.damaged());
  for (const StoreFinding& finding : checked.findings)
    EXPECT_EQ(finding.where, path("2024-02-20")) << finding.what;
  const HashedBatch next = hashed(fleet_.batch("n1", 7, kMadeUpDayNs + kDayNs));
  EXPECT_TRUE(store->ingest(next.hash, next.batch).is_ok());
  EXPECT_FALSE(store->compact().is_ok());
  EXPECT_TRUE(file_exists(path("2024-02-20"))) << "nothing removes what it could not fold";
  EXPECT_FALSE(store->expire(kMadeUpDayNs + kDayNs).is_ok());
  EXPECT_TRUE(file_exists(path("2024-02-20")));

  // Cut to nothing, it is no different from one that was just begun: a remark.
  ASSERT_TRUE(write_atomic(path("2024-02-20"), "").is_ok());
  const StoreCheck cut = check_store(target_).value();
  ASSERT_EQ(cut.findings.size(), 1U);
  EXPECT_EQ(cut.findings[0].where, path("2024-02-20"));
}

}  // namespace
}  // namespace purlin::store
