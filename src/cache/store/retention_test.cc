// SPDX-License-Identifier: Apache-2.0
#include "cache/store/retention.h"

#include "base/files.h"
#include "base/time.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace purlin::cache {
namespace {

constexpr std::int64_t kDay = std::int64_t{86400} * 1'000'000'000;

class Retention : public testing::Test {
 protected:
  // Recorded so many days ago; the faster one of a key is its current entry.
  std::string put(std::int64_t m, double time_ms, int days_ago) {
    Entry entry = sample_entry(m);
    entry.time_ms = time_ms;
    entry.recorded_at = format_rfc3339(now_ - days_ago * kDay);
    return store_.put(entry)->record;
  }
  RetentionPlan plan(const cache::Retention& retention) {
    return plan_retention(store_, retention, now_).value();
  }
  void apply(const RetentionPlan& plan) {
    ASSERT_TRUE(
        store_.rewrite([&](const CacheRecord& r) { return plan.drop.count(r.id) == 0; }).is_ok());
  }
  TemporaryDirectory folder_;
  Store store_ = Store::open(folder_.path()).value();
  const std::int64_t now_ = 1795132800 * std::int64_t{1'000'000'000};
};

TEST_F(Retention, KeepsAllUnlessAsked) {
  put(1024, 1, 9);
  put(1024, 2, 5);
  EXPECT_TRUE(plan({}).drop.empty());
  EXPECT_EQ(plan({}).left, 2u);
}

TEST_F(Retention, HistoryGoesAndTheCurrentEntryStays) {
  const std::string current = put(1024, 1, 9), old = put(1024, 3, 8), newer = put(1024, 2, 5);
  const std::string other = put(64, 1, 100);
  EXPECT_EQ(plan({.history = 1}).drop, std::set<std::string>{old});
  EXPECT_EQ(plan({.history = 0}).drop, (std::set<std::string>{old, newer}));
  apply(plan({.history = 0}));
  EXPECT_EQ(store_.record_set().entries(), 2u);
  EXPECT_TRUE(store_.has(current));
  EXPECT_TRUE(store_.has(other));
}

TEST_F(Retention, AgeAndNumberSpareWhatIsServed) {
  const std::string current = put(1024, 1, 90), old = put(1024, 3, 80);
  put(1024, 2, 5);
  EXPECT_EQ(plan({.older_than_s = 30 * 86400.0}).drop, std::set<std::string>{old});
  EXPECT_EQ(plan({.older_than_s = 30 * 86400.0, .even_current = true}).drop,
            (std::set<std::string>{old, current}));
  EXPECT_EQ(plan({.max_entries = 2}).drop, std::set<std::string>{old});
  EXPECT_EQ(plan({.max_entries = 1}).left, 1u);
  put(64, 1, 3);
  EXPECT_EQ(plan({.max_entries = 1}).left, 2u) << "two keys are served";
  const RetentionPlan all = plan({.max_entries = 1, .even_current = true});
  EXPECT_EQ(all.left, 1u);
  EXPECT_EQ(all.current, 1u);
}

TEST_F(Retention, BytesGoOldestFirstAndHistoryBeforeWhatIsServed) {
  const std::string current = put(1024, 1, 90), old = put(1024, 3, 80), newer = put(1024, 2, 5);
  const std::string other = put(64, 1, 100);
  const RetentionPlan all = plan({});
  EXPECT_EQ(all.bytes, file_size(store_.directory() + "/entries.log").value());
  EXPECT_EQ(all.bytes_left, all.bytes);
  EXPECT_TRUE(plan({.max_bytes = all.bytes}).drop.empty());
  EXPECT_EQ(plan({.max_bytes = all.bytes - 1}).drop, std::set<std::string>{old});
  EXPECT_EQ(plan({.max_bytes = 1}).drop, (std::set<std::string>{old, newer}));
  EXPECT_EQ(plan({.max_bytes = all.bytes / 2 - 200, .even_current = true}).drop,
            (std::set<std::string>{old, newer, other}));
  const RetentionPlan spared =
      plan({.max_bytes = 1, .even_current = true, .spare = Id128::parse(other)});
  EXPECT_EQ(spared.drop, (std::set<std::string>{old, newer, current}));
  apply(spared);
  EXPECT_EQ(file_size(store_.directory() + "/entries.log").value(), spared.bytes_left);
}

// The cache of a process with PURLIN_CACHE_QUOTA.
class Quota : public Retention {
 protected:
  void SetUp() override {
    put(1, 1, 1);
    entry_bytes_ = bytes();
    ::setenv("PURLIN_CACHE_QUOTA", std::to_string(8 * entry_bytes_).c_str(), 1);
  }
  void TearDown() override { ::unsetenv("PURLIN_CACHE_QUOTA"); }
  std::uint64_t bytes() { return file_size(store_.directory() + "/entries.log").value(); }
  std::uint64_t entry_bytes_ = 0;
};

TEST_F(Quota, HoldsByItselfAndNeverForgetsWhatWasJustPut) {
  const std::string first = store_.current()[0].record;
  for (int i = 0; i < 40; ++i) {
    const std::string put_now = put(std::int64_t{64} << i, 1, 500 + i);  // older than all before it
    EXPECT_TRUE(store_.has(put_now)) << i;
    EXPECT_LE(bytes(), 8 * entry_bytes_) << i;
  }
  EXPECT_TRUE(store_.has(first)) << "the youngest";
  EXPECT_GE(store_.record_set().entries(), 6u);
  Store other = Store::open(store_.directory()).value();
  EXPECT_EQ(other.record_set().entries(), store_.record_set().entries());
}

TEST_F(Quota, HoldsForWhatIsMergedAndKeepsWhatWithdrew) {
  const CacheRecord bad = store_.records().value()[0];
  ASSERT_TRUE(store_.set_status(new_status(bad.id, EntryState::kQuarantined, "wrong")).is_ok());
  std::vector<CacheRecord> records;
  for (int i = 0; i < 40; ++i) {
    Entry entry = sample_entry(std::int64_t{64} << i);  // each in a separate bucket
    entry.recorded_at = format_rfc3339(now_ - i * kDay);
    records.push_back(make_record(entry));
  }
  EXPECT_EQ(store_.absorb(records)->added, 40u);
  EXPECT_LE(bytes(), 8 * entry_bytes_);
  EXPECT_TRUE(store_.has(records[0].id)) << "the youngest";
  EXPECT_FALSE(store_.has(records[39].id));
  EXPECT_FALSE(store_.has(bad.id)) << "nobody is served it";
  ASSERT_TRUE(store_.absorb(std::span(&bad, 1)).is_ok());
  for (const StoredEntry& served : store_.current()) EXPECT_NE(served.record, bad.id);
}

TEST_F(Quota, OneThatIsNoSizeIsRefusedBeforeAnythingIsWritten) {
  ::setenv("PURLIN_CACHE_QUOTA", "plenty", 1);
  EXPECT_EQ(store_.check_writable().code(), Code::kInvalid);
  EXPECT_EQ(store_.put(sample_entry(7)).status().code(), Code::kInvalid);
  EXPECT_EQ(store_.record_set().entries(), 1u);
}

// An entry that was withdrawn and then forgotten comes back by a merge: it must not be served.
TEST_F(Retention, WhatWasSaidAgainstAnEntryOutlivesIt) {
  const std::string fast = put(1024, 1, 9), slow = put(1024, 2, 8);
  const CacheRecord record = store_.record(fast).value();
  ASSERT_TRUE(store_.set_status(new_status(fast, EntryState::kValidated, "first")).is_ok());
  ASSERT_TRUE(store_.set_status(new_status(fast, EntryState::kQuarantined, "wrong")).is_ok());
  const RetentionPlan forgotten = plan({.history = 0});
  EXPECT_EQ(forgotten.entries, 1u);
  EXPECT_EQ(forgotten.statuses, 1u) << "the earlier one";
  apply(forgotten);
  EXPECT_FALSE(store_.has(fast));
  ASSERT_TRUE(store_.absorb(std::span(&record, 1)).is_ok());
  ASSERT_EQ(store_.current().size(), 1u);
  EXPECT_EQ(store_.current()[0].record, slow);
}

}  // namespace
}  // namespace purlin::cache
