// SPDX-License-Identifier: Apache-2.0
// A cache and a shared cache on a disk that forgets what was not synced, and on one whose calls
// fail, each in turn: what was acknowledged is there afterwards, and nothing is left behind.
#include "base/file_fault_calls_testing.h"
#include "base/file_faults_testing.h"
#include "base/random.h"
#include "blobs/directory_blobs.h"
#include "cache/share/share.h"
#include "cache/store/retention.h"
#include "cache/store/store.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::cache {
namespace {

using Ledger = std::set<std::string>;

std::vector<CacheRecord> some_records(int from, int to) {
  std::vector<CacheRecord> records;
  for (int i = from; i < to; ++i) records.push_back(make_record(sample_entry(i + 1)));
  return records;
}

void note(Ledger& ledger, const std::vector<CacheRecord>& records) {
  for (const CacheRecord& record : records) ledger.insert(record.id);
}

// Whether a cache opens, holds the ledger's records, and complains of no damage.
void expect_holds(const std::string& directory, const Ledger& acknowledged,
                  const std::string& where) {
  Result<Store> store = Store::open(directory);
  ASSERT_TRUE(store.is_ok()) << where << ": " << store.status().message();
  ASSERT_TRUE(store->examine().is_ok()) << where;
  EXPECT_EQ(store->damaged(), 0u) << where;
  std::size_t lost = 0;
  for (const std::string& id : acknowledged) lost += store->has(id) ? 0 : 1;
  EXPECT_EQ(lost, 0u) << where << ": of " << acknowledged.size() << " acknowledged records";
}

std::set<std::string> shared_ids(const std::string& directory, const std::string& where) {
  const auto blobs = blobs::make_directory_blobs(directory, 1, system_clock());
  Share share(*blobs, system_clock(), 3);
  Ledger ids;
  const Result<PullReport> pulled = share.pull([](const std::string&) { return false; },
                                               [&](const std::vector<CacheRecord>& records) {
                                                 note(ids, records);
                                                 return Status::ok();
                                               });
  if (!pulled.is_ok()) {
    EXPECT_EQ(pulled.status().code(), Code::kNotFound) << where << pulled.status().message();
    return ids;
  }
  EXPECT_TRUE(pulled->problems.empty()) << where << ": " << pulled->problems.front();
  return ids;
}

class DiskFaults : public testing::Test {
 protected:
  DiskFaults() : cache_(folder_.file("disk/new/cache")), shared_(folder_.file("disk/new/share")) {
    EXPECT_TRUE(make_directories(folder_.file("disk")).is_ok());
  }
  // What a power cut leaves at every sync of `work`, three ways; `check(folder, where)` judges it.
  void cut_power_during(const std::function<void()>& work,
                        const std::function<void(const std::string&, const std::string&)>& check) {
    DroppingDisk disk(folder_.file("disk"));
    Random random(11);
    int point = 0;
    disk.at_each_point = [&] {
      for (int way = 0; way < 3; ++way) {
        const std::string to = folder_.file("after");
        // All that was not synced is gone; or each change, by chance, has arrived.
        disk.cut_power(
            to, way == 0 ? std::function<bool()>() : [&] { return random.below(2) == 0; });
        check(to, fmt::format("power cut at point {} (way {})", point, way));
        EXPECT_TRUE(remove_tree(to).is_ok());
      }
      ++point;
    };
    work();
    disk.point();
    disk.at_each_point = {};
    EXPECT_GT(point, 3);
    RecordProperty("power_cuts", 3 * point);
  }

  TemporaryDirectory folder_;
  const std::string cache_, shared_;
  Ledger acknowledged_;
};

TEST_F(DiskFaults, APutSurvivesAPowerCut) {
  cut_power_during(
      [&] {
        Store store = *Store::open(cache_);
        for (int i = 0; i < 4; ++i) {
          const Result<Put> put = store.put(sample_entry(i + 1));
          ASSERT_TRUE(put.is_ok());
          acknowledged_.insert(put->record);
        }
        Store other = *Store::open(cache_);
        ASSERT_TRUE(other.put(sample_entry(2), {.replace = true}).is_ok());
      },
      [&](const std::string& at, const std::string& where) {
        expect_holds(at + "/new/cache", acknowledged_, where);
      });
}

// Killed between its write and its sync: the next writer that finds the record relies on it.
TEST_F(DiskFaults, AKnownRecordIsDurable) {
  ASSERT_TRUE(Store::open(cache_)->put(sample_entry(1)).is_ok());
  const CacheRecord record = make_record(sample_entry(2));
  cut_power_during(
      [&] {
        const int fd = ::open((cache_ + "/entries.log").c_str(), O_WRONLY | O_APPEND);
        const std::string bytes = encode_record(1, record.payload);
        ASSERT_EQ(::write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
        ::close(fd);
        const Result<Put> put = Store::open(cache_)->put(sample_entry(2));
        ASSERT_TRUE(put.is_ok());
        EXPECT_TRUE(put->known);
        acknowledged_.insert(put->record);
        ASSERT_TRUE(Store::open(cache_)->put(sample_entry(3)).is_ok());
      },
      [&](const std::string& at, const std::string& where) {
        expect_holds(at + "/new/cache", acknowledged_, where);
      });
}

TEST_F(DiskFaults, IndexMergeAndRewriteSurviveAPowerCut) {
  const std::vector<CacheRecord> records = some_records(0, 30);
  cut_power_during(
      [&] {
        Store store = *Store::open(cache_);
        ASSERT_TRUE(store.absorb(records).is_ok());
        note(acknowledged_, records);
        ASSERT_TRUE(store.write_index().is_ok());
        acknowledged_.erase(records[3].id);
        ASSERT_TRUE(
            store.rewrite([&](const CacheRecord& r) { return r.id != records[3].id; }).is_ok());
        ASSERT_TRUE(store.write_index().is_ok());
        ASSERT_TRUE(store.reread().is_ok());
      },
      [&](const std::string& at, const std::string& where) {
        expect_holds(at + "/new/cache", acknowledged_, where);
      });
}

TEST_F(DiskFaults, APushSurvivesAPowerCut) {
  cut_power_during(
      [&] {
        const auto blobs = blobs::make_directory_blobs(shared_, 1, system_clock());
        Share share(*blobs, system_clock(), 5);
        for (int i = 0; i < 3; ++i) {
          const std::vector<CacheRecord> records = some_records(4 * i, 4 * i + 4);
          ASSERT_TRUE(share.push(records).is_ok());
          note(acknowledged_, records);
        }
        ASSERT_TRUE(share.compact({.grace_s = 0}).is_ok());
      },
      [&](const std::string& at, const std::string& where) {
        const Ledger there = shared_ids(at + "/new/share", where);
        EXPECT_TRUE(
            std::includes(there.begin(), there.end(), acknowledged_.begin(), acknowledged_.end()))
            << where;
      });
}

// Dropped records may come back; those that stay are there, also after later writes.
TEST_F(DiskFaults, AGcOfACacheSurvivesAPowerCut) {
  const std::vector<CacheRecord> records = some_records(0, 12);
  cut_power_during(
      [&] {
        Store store = *Store::open(cache_);
        ASSERT_TRUE(store.absorb(records).is_ok());
        ASSERT_TRUE(store.write_index().is_ok());
        note(acknowledged_, records);
        const Result<RetentionPlan> plan = plan_retention(
            store, {.max_entries = 5, .even_current = true}, system_clock().wall_ns());
        ASSERT_TRUE(plan.is_ok());
        EXPECT_EQ(plan->drop.size(), 7u);
        for (const std::string& id : plan->drop) acknowledged_.erase(id);
        ASSERT_TRUE(store.rewrite([&](const CacheRecord& r) { return plan->drop.count(r.id) == 0; })
                        .is_ok());
        const Result<Put> put = store.put(sample_entry(40));
        ASSERT_TRUE(put.is_ok());
        acknowledged_.insert(put->record);
        ASSERT_TRUE(hold_quota(store, bytes_in_use(store) + 4096, Id128{}).is_ok());
      },
      [&](const std::string& at, const std::string& where) {
        expect_holds(at + "/new/cache", acknowledged_, where);
      });
}

// Small segments become one, and the old ones go: at no moment is a record in none.
TEST_F(DiskFaults, AGcOfAShareSurvivesAPowerCut) {
  const auto blobs = blobs::make_directory_blobs(shared_, 1, system_clock());
  for (int i = 0; i < 6; ++i) {
    const std::vector<CacheRecord> records = some_records(3 * i, 3 * i + 3);
    Share share(*blobs, system_clock(), 20 + static_cast<std::uint64_t>(i));
    ASSERT_TRUE(share.push(records).is_ok());
    note(acknowledged_, records);
  }
  cut_power_during(
      [&] {
        Share share(*blobs, system_clock(), 5);
        for (int round = 0; round < 2; ++round) {
          ASSERT_TRUE(share.compact({.grace_s = 0}).is_ok());
          const std::vector<CacheRecord> more = some_records(30 + round, 31 + round);
          ASSERT_TRUE(share.push(more).is_ok());
          note(acknowledged_, more);
        }
      },
      [&](const std::string& at, const std::string& where) {
        const Ledger there = shared_ids(at + "/new/share", where);
        EXPECT_TRUE(
            std::includes(there.begin(), there.end(), acknowledged_.begin(), acknowledged_.end()))
            << where;
        // The share still takes a push and a collection.
        const auto after = blobs::make_directory_blobs(at + "/new/share", 1, system_clock());
        Share share(*after, system_clock(), 6);
        const auto pushed = share.push(some_records(50, 51));
        EXPECT_TRUE(pushed.is_ok()) << where << ": " << pushed.status().message();
        const auto compacted = share.compact({.grace_s = 0});
        EXPECT_TRUE(compacted.is_ok()) << where << ": " << compacted.status().message();
        EXPECT_GE(shared_ids(at + "/new/share", where).size(), there.size()) << where;
      });
}

// What a pull has read counts as there only once it is durable: the next pull completes it.
TEST_F(DiskFaults, APullSurvivesAPowerCut) {
  const auto blobs = blobs::make_directory_blobs(folder_.file("source"), 1, system_clock());
  Ledger all;
  for (int i = 0; i < 3; ++i) {
    const std::vector<CacheRecord> records = some_records(4 * i, 4 * i + 4);
    Share share(*blobs, system_clock(), 30 + static_cast<std::uint64_t>(i));
    ASSERT_TRUE(share.push(records).is_ok());
    note(all, records);
  }
  const auto pull_into = [&](const std::string& cache, const std::string& memo, Ledger* absorbed) {
    Store store = *Store::open(cache);
    Share share(*blobs, system_clock(), 7, {.memo_directory = memo});
    const Result<PullReport> pulled =
        share.pull([&](const std::string& id) { return store.has(id); },
                   [&](const std::vector<CacheRecord>& records) -> Status {
                     if (const auto done = store.absorb(records); !done.is_ok())
                       return done.status();
                     if (absorbed != nullptr) note(*absorbed, records);
                     return Status::ok();
                   });
    EXPECT_TRUE(pulled.is_ok());
  };
  cut_power_during([&] { pull_into(cache_, folder_.file("disk/new/memo"), &acknowledged_); },
                   [&](const std::string& at, const std::string& where) {
                     expect_holds(at + "/new/cache", acknowledged_, where);
                     pull_into(at + "/new/cache", at + "/new/memo", nullptr);
                     expect_holds(at + "/new/cache", all, where + ", pulled again");
                   });
  EXPECT_EQ(acknowledged_, all);
}

int open_descriptors() {
  int count = 0;
  for (const auto& item : std::filesystem::directory_iterator("/proc/self/fd"))
    count += item.exists();
  return count;
}

// Does `work` with its first, second, … call on files failing, until none is left to fail.
template <class Work>
void fail_each_call(const TemporaryDirectory& folder, const Work& work) {
  const int before = open_descriptors();
  std::map<std::string, int> struck_calls;
  for (const int code : {EIO, ENOSPC})
    for (int n = 0;; ++n) {
      const std::string disk = folder.file(fmt::format("{}-{}", code, n));
      ASSERT_LT(n, 3000);
      std::string struck;
      const bool finished = work(disk, n, code, &struck);
      EXPECT_EQ(open_descriptors(), before) << "descriptors leak at call " << n << ", " << struck;
      EXPECT_TRUE(remove_tree(disk).is_ok());
      if (finished) break;
      ++struck_calls[struck];
    }
  for (const auto& [call, count] : struck_calls) testing::Test::RecordProperty(call, count);
}

// A failure is an error, or it cost nothing; what was acknowledged is there, and a second try
// works.
TEST_F(DiskFaults, EachCallOfACacheFailsInTurn) {
  const std::vector<CacheRecord> first = some_records(0, 5), second = some_records(5, 9);
  fail_each_call(folder_, [&](const std::string& disk, int n, int code, std::string* struck) {
    const std::string directory = disk + "/cache";
    Ledger ledger;
    FileFaults faults;
    faults.fail_at = n;
    faults.fail_with = code;
    Status failure;
    const auto step = [&](const Status& status) {
      if (!status.is_ok() && failure.is_ok()) failure = status;
      return status.is_ok();
    };
    Result<Store> store = Store::open(directory);
    if (step(store.status())) {
      if (step(store->absorb(first).status())) note(ledger, first);
      if (const auto put = store->put(sample_entry(4, 9)); step(put.status()))
        ledger.insert(put->record);
      step(store->write_index());
      if (step(store->absorb(second).status())) note(ledger, second);
      Ledger left = ledger;
      left.erase(first[0].id);
      // When it fails, either file may be there.
      step(store->rewrite([&](const CacheRecord& r) { return r.id != first[0].id; }));
      ledger = left;
      step(store->examine());
      step(store->reread());
      step(store->records().status());
    }
    *struck = faults.struck;
    const bool finished = faults.calls <= n;
    faults.fail_at = -1;
    const std::string where =
        fmt::format("call {} ({}) failed with {}: {}", n, *struck, code, failure.message());
    expect_holds(directory, ledger, where);
    Store again = *Store::open(directory);
    EXPECT_TRUE(again.absorb(first).is_ok()) << where;
    note(ledger, first);
    expect_holds(directory, ledger, where);
    const std::vector<std::string> names = list_directory(directory).value();
    for (const std::string& name : names)
      // Where removing it is what failed, the file stays.
      EXPECT_TRUE(*struck == "unlink" || name.find(".tmp.") == std::string::npos) << name << where;
    if (!failure.is_ok()) {
      EXPECT_NE(failure.code(), Code::kInvalid) << where;
      EXPECT_NE(failure.message().find(disk), std::string::npos) << where;
    }
    return finished;
  });
}

TEST_F(DiskFaults, EachCallOfAShareFailsInTurn) {
  const std::vector<CacheRecord> first = some_records(0, 3), second = some_records(3, 6);
  fail_each_call(folder_, [&](const std::string& disk, int n, int code, std::string* struck) {
    const auto blobs = blobs::make_directory_blobs(disk + "/share", 1, system_clock());
    Share share(*blobs, system_clock(), 5, {.memo_directory = disk + "/memo"});
    Ledger ledger;
    FileFaults faults;
    faults.fail_at = n;
    faults.fail_with = code;
    if (share.push(first).is_ok()) note(ledger, first);
    if (share.push(second).is_ok()) note(ledger, second);
    (void)share
        .pull([](const std::string&) { return false; },
              [](const std::vector<CacheRecord>&) { return Status::ok(); })
        .is_ok();
    (void)share.compact({.grace_s = 0}).is_ok();
    *struck = faults.struck;
    const bool finished = faults.calls <= n;
    faults.fail_at = -1;
    const std::string where = fmt::format("call {} ({}) failed with {}", n, *struck, code);
    const Ledger there = shared_ids(disk + "/share", where);
    EXPECT_TRUE(std::includes(there.begin(), there.end(), ledger.begin(), ledger.end())) << where;
    EXPECT_TRUE(share.push(first).is_ok()) << where;
    EXPECT_TRUE(share.push(second).is_ok()) << where;
    EXPECT_EQ(shared_ids(disk + "/share", where).size(), 6u) << where;
    return finished;
  });
}

TEST_F(DiskFaults, SignalsAndShortWritesChangeNothing) {
  FileFaults faults;
  faults.interrupt = faults.short_writes = true;
  const std::vector<CacheRecord> records = some_records(0, 10);
  Store store = *Store::open(cache_);
  ASSERT_TRUE(store.absorb(records).is_ok());
  ASSERT_TRUE(store.write_index().is_ok());
  ASSERT_TRUE(store.rewrite([](const CacheRecord&) { return true; }).is_ok());
  note(acknowledged_, records);
  expect_holds(cache_, acknowledged_, "with signals");
  const auto blobs = blobs::make_directory_blobs(shared_, 1, system_clock());
  Share share(*blobs, system_clock(), 5);
  ASSERT_TRUE(share.push(records).is_ok());
  EXPECT_EQ(shared_ids(shared_, "with signals").size(), 10u);
}

}  // namespace
}  // namespace purlin::cache
