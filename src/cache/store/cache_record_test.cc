// SPDX-License-Identifier: Apache-2.0
// Records, and merging of stores: in any order and any number of times, the same set serves the
// same entries.
#include "cache/store/cache_record.h"

#include "base/random.h"
#include "cache/store/store.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::cache {
namespace {

constexpr char kFuture[] = "2199-01-01T00:00:00Z";  // of a host whose clock is wrong

Entry timed(double time_ms, std::int64_t bm, bool verified = true) {
  Entry entry = sample_entry(1024, bm);
  entry.time_ms = time_ms;
  entry.verified = verified;
  return entry;
}

EntryStatus status_of(const CacheRecord& record, EntryState state, std::string at) {
  EntryStatus status = new_status(record.id, state, "for the test");
  status.at = std::move(at);
  return status;
}

// What a store serves: every key's entry, by record.
std::vector<std::string> served_of(const Store& store) {
  std::vector<std::string> all;
  for (const StoredEntry& stored : store.current()) all.push_back(stored.record);
  return all;
}

TEST(Record, IsNamedByItsContents) {
  const CacheRecord record = make_record(sample_entry());
  const Json json = *Json::parse(record.payload);
  Json reordered = Json::object();
  for (auto member = json.members().rbegin(); member != json.members().rend(); ++member)
    reordered.set(member->key, member->value);
  EXPECT_EQ(record_id(reordered), record.id);
  EXPECT_EQ(record_id(*Json::parse(json.dump(2))), record.id);
  reordered.set("time_ms", 0.2501);
  EXPECT_NE(record_id(reordered), record.id);
  EXPECT_EQ(Id128::parse(record.id).hex(), record.id);
  EXPECT_EQ(Id128::parse("xyz"), Id128());
}

TEST(Record, StatusRoundTripsAndRefuses) {
  EntryStatus status = new_status(make_record(sample_entry()).id, EntryState::kValidated, "fine");
  status.driver = "580.95";
  const Result<EntryStatus> back = status_from_json(to_json(status));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(to_json(*back), to_json(status));
  const auto with = [&](std::string_view key, Json value) {
    Json json = to_json(status);
    json.set(key, std::move(value));
    return status_from_json(json).status().code();
  };
  EXPECT_EQ(with("record", "abc"), Code::kInvalid);
  EXPECT_EQ(with("status", "gone"), Code::kInvalid);
  EXPECT_EQ(with("at", "yesterday"), Code::kInvalid);
  EXPECT_EQ(with("schema", "purlin.entry-status/2"), Code::kCorrupt);
}

TEST(Merge, IsCommutativeAssociativeAndIdempotent) {
  // Two keys, five entries, and statuses that arrive before, after and without their entry.
  std::vector<CacheRecord> all;
  for (const auto& [time, bm] : {std::pair{0.5, 16}, std::pair{0.25, 32}, std::pair{0.3, 64}})
    all.push_back(make_record(timed(time, bm)));
  all.push_back(make_record(timed(0.1, 128, false)));
  all.push_back(make_record(sample_entry(4096)));
  all.push_back(make_record(status_of(all[1], EntryState::kDemoted, "2026-11-20T12:00:01.5Z")));
  all.push_back(make_record(status_of(all[2], EntryState::kQuarantined, "2026-11-20T12:00:02Z")));
  all.push_back(make_record(status_of(all[2], EntryState::kActive, "2026-11-20T12:00:03Z")));
  CacheRecord unknown = all[0];
  unknown.id = std::string(32, 'a');
  all.push_back(make_record(status_of(unknown, EntryState::kDemoted, "2026-11-20T12:00:03Z")));

  Random random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<CacheRecord> order = all;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    TemporaryDirectory folder;
    Store a = *Store::open(folder.file("a")), b = *Store::open(folder.file("b"));
    const std::size_t cut = random.below(order.size() + 1);
    ASSERT_TRUE(a.absorb(std::span(order).first(cut)).is_ok());
    ASSERT_TRUE(b.absorb(std::span(order).subspan(cut)).is_ok());
    const Result<Absorbed> merged = a.absorb(*b.records());
    ASSERT_TRUE(merged.is_ok());
    EXPECT_EQ(merged->added, order.size() - cut);
    EXPECT_EQ(a.absorb(order)->known, order.size());  // again: nothing new
    EXPECT_EQ(a.records()->size(), order.size());
    const std::vector<std::string> expected = {all[2].id, all[4].id};
    EXPECT_EQ(served_of(a), expected) << "round " << round;
    EXPECT_EQ(served_of(*Store::open(folder.file("a"))), expected);
  }
}

TEST(Merge, RefusesWhatWasChangedOnTheWay) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  std::vector<CacheRecord> records = {make_record(sample_entry()), make_record(sample_entry(64)),
                                      make_record(sample_entry(128))};
  records[0].payload[records[0].payload.find("0.25")] = '1';
  records[1].payload = "{";
  const Result<Absorbed> absorbed = store.absorb(records);
  ASSERT_TRUE(absorbed.is_ok());
  EXPECT_EQ(absorbed->refused, 2u);
  EXPECT_EQ(absorbed->added, 1u);
  ASSERT_EQ(absorbed->reasons.size(), 2u);
  EXPECT_NE(absorbed->reasons[0].find("changed on the way"), std::string::npos);
}

TEST(Status, DecidesWhoIsServed) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Result<Put> slow = store.put(timed(0.5, 16)), fast = store.put(timed(0.25, 32));
  EXPECT_TRUE(fast->served);
  const Result<Put> newer = store.put(timed(0.4, 64));
  EXPECT_FALSE(newer->served);  // newer but slower does not displace
  EXPECT_EQ(newer->kept, fast->record);
  EXPECT_TRUE(store.put(timed(0.4, 64))->known);

  const Entry wanted = sample_entry();
  const auto got = [&] { return store.get(wanted.key, wanted.problem).record; };
  EXPECT_EQ(got(), fast->record);
  ASSERT_TRUE(store.set_status(new_status(fast->record, EntryState::kDemoted, "slower")).is_ok());
  EXPECT_EQ(got(), newer->record);
  ASSERT_TRUE(store.set_status(new_status(newer->record, EntryState::kQuarantined, "")).is_ok());
  EXPECT_EQ(got(), slow->record);
  ASSERT_TRUE(store.set_status(new_status(slow->record, EntryState::kDemoted, "worn")).is_ok());
  const Lookup none = store.get(wanted.key, wanted.problem);
  EXPECT_EQ(none.outcome, Outcome::kMiss);
  EXPECT_EQ(none.decided_by, "status");

  // A clock behind the one that demoted does not make the later word the earlier.
  EntryStatus back = new_status(fast->record, EntryState::kActive, "the driver was to blame");
  back.at = "2020-01-01T00:00:00Z";
  ASSERT_TRUE(store.set_status(back).is_ok());
  EXPECT_EQ(got(), fast->record);
  EXPECT_EQ(store.history(wanted.key)->size(), 3u);
  EXPECT_EQ(store.set_status(new_status(std::string(32, 'a'), EntryState::kDemoted, "")).code(),
            Code::kNotFound);
}

TEST(Status, ReplaceDemotesTheBetterOne) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Result<Put> fast = store.put(timed(0.25, 32));
  const Result<Put> chosen = store.put(timed(0.5, 64), {.replace = true, .reason = "less power"});
  ASSERT_TRUE(chosen.is_ok());
  EXPECT_TRUE(chosen->served);
  const auto history = store.history(sample_entry().key);
  ASSERT_EQ(history->size(), 2u);
  EXPECT_EQ((*history)[0].record, fast->record);
  EXPECT_EQ((*history)[0].state, EntryState::kDemoted);
  EXPECT_NE((*history)[0].statuses.at(0).reason.find("less power"), std::string::npos);
  EXPECT_TRUE(store.put(timed(0.25, 32), {.replace = true})->served);  // and back
}

TEST(Status, WhatIsSaidLaterCountsWhateverTheClocksSay) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Result<Put> first = store.put(timed(0.1, 32));
  ASSERT_TRUE(store.set_status(status_of(make_record(timed(0.1, 32)), EntryState::kActive, kFuture))
                  .is_ok());
  const Result<Put> second = store.put(timed(0.2, 64), {.replace = true});
  ASSERT_TRUE(second.is_ok());
  EXPECT_TRUE(second->served) << second->kept;
  EXPECT_EQ(served_of(store), std::vector<std::string>{second->record});
  // And back again: the demotion of the first entry is dated past kFuture by now.
  const Result<Put> again = store.put(timed(0.1, 32), {.replace = true});
  EXPECT_TRUE(again->served && again->known);
}

// No status could have a later date, so no status could withdraw the entry again.
TEST(Status, ATimeNearTheEndOfTimeIsRefused) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.put(timed(0.1, 32)).is_ok());
  const EntryStatus last =
      status_of(make_record(timed(0.1, 32)), EntryState::kActive, "2261-12-31T23:59:59.999999999Z");
  const Result<Absorbed> absorbed = store.absorb(std::vector{make_record(last)});
  ASSERT_TRUE(absorbed.is_ok());
  EXPECT_EQ(absorbed->refused, 1u);
  EXPECT_EQ(store.set_status(last).code(), Code::kInvalid);
}

TEST(Status, AValidationStandsForItsDriver) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Result<Put> put = store.put(sample_entry());
  CacheKey wanted = sample_entry().key;
  wanted.driver = "590.01";
  EXPECT_EQ(store.get(wanted, sample_entry().problem).decided_by, "driver");
  EntryStatus validated = new_status(put->record, EntryState::kValidated, "still wins");
  validated.driver = wanted.driver;
  validated.toolkit = wanted.toolkit;
  ASSERT_TRUE(store.set_status(validated).is_ok());
  EXPECT_EQ(store.get(wanted, sample_entry().problem).outcome, Outcome::kExact);
  wanted.driver = "600.00";
  EXPECT_EQ(store.get(wanted, sample_entry().problem).outcome, Outcome::kMiss);
}

TEST(Lookup, ServesTheNearestWithinABound) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.put(sample_entry(1024)).is_ok());
  ASSERT_TRUE(store.put(sample_entry(8192, 128)).is_ok());
  const Entry wanted = sample_entry(2048);
  EXPECT_EQ(store.get(wanted.key, wanted.problem).outcome, Outcome::kMiss);
  EXPECT_EQ(store.get(wanted.key, wanted.problem).decided_by, "bucket");
  EXPECT_EQ(store.get(wanted.key, wanted.problem, {.nearest = 0.9}).outcome, Outcome::kMiss);
  const Lookup near = store.get(wanted.key, wanted.problem, {.nearest = 2.5});
  EXPECT_EQ(near.outcome, Outcome::kNearest);
  ASSERT_TRUE(near.entry.has_value());
  EXPECT_EQ(near.entry->problem, sample_entry(1024).problem);
}

TEST(Store, RewriteKeepsWhatIsWanted) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path()), reader = *Store::open(folder.path());
  const Result<Put> gone = store.put(sample_entry(64)), kept = store.put(sample_entry(128));
  ASSERT_TRUE(reader.refresh().is_ok());
  ASSERT_TRUE(store.rewrite([&](const CacheRecord& r) { return r.id != gone->record; }).is_ok());
  EXPECT_FALSE(store.has(gone->record));
  EXPECT_TRUE(store.has(kept->record));
  ASSERT_TRUE(reader.refresh().is_ok());
  EXPECT_EQ(reader.list().size(), 1u);
  EXPECT_EQ(reader.generation(), 1u);
  ASSERT_TRUE(store.put(sample_entry(256)).is_ok());
  ASSERT_TRUE(reader.refresh().is_ok());
  EXPECT_EQ(reader.list().size(), 2u);
}

// A pull must not bring what its own rules would not find.
TEST(Records, AnEntryThatClaimsAnotherBucketIsRefused) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  Entry entry = sample_entry(64);
  entry.key.bucket = "M=8192,N=1024,K=512";
  const CacheRecord record = make_record(entry);
  const Result<Absorbed> absorbed = store.absorb(std::span(&record, 1));
  ASSERT_TRUE(absorbed.is_ok());
  EXPECT_EQ(absorbed->refused, 1u);
  EXPECT_NE(absorbed->reasons.at(0).find("into 'M=64,N=1024,K=512'"), std::string::npos)
      << absorbed->reasons[0];
  EXPECT_EQ(store.put(entry).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin::cache
