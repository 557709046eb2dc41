// SPDX-License-Identifier: Apache-2.0
// The index: found again what was put in, no trust in what is damaged, and no difference to lookups
// whether it is there, absent, stale or wrong.
#include "cache/store/summary_index.h"

#include "base/random.h"
#include "cache/store/store.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace purlin::cache {
namespace {

std::vector<CacheRecord> entries(int count) {
  std::vector<CacheRecord> records;
  for (int i = 0; i < count; ++i) {
    Entry entry = sample_entry(std::int64_t{1} << i % 20, i);
    entry.time_ms = 1 + i;
    entry.samples.clear();
    records.push_back(make_record(entry));
  }
  return records;
}

// Of every key: what is served.
std::vector<std::string> served(const Store& store) {
  std::vector<std::string> all;
  for (const StoredEntry& stored : store.current()) all.push_back(stored.record);
  return all;
}

TEST(SummaryIndex, FindsEverySummary) {
  std::vector<EntrySummary> summaries;
  std::vector<StatusSummary> statuses;
  Random random(3);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EntrySummary summary;
    summary.record = {random.next(), i};
    summary.group = i % 7;
    summary.key = {i % 91, 5};
    summaries.push_back(summary);
    StatusSummary status;
    status.target = summary.record;
    status.record = {random.next(), ~i};
    for (std::uint64_t n = 0; n < i % 3; ++n, ++status.record.low) statuses.push_back(status);
  }
  std::vector<EntrySummary> kept = summaries;
  std::vector<StatusSummary> kept_statuses = statuses;
  const auto index = SummaryIndex::parse(SummaryIndex::encode({}, summaries, statuses));
  ASSERT_TRUE(index.is_ok()) << index.status().message();
  for (std::uint64_t i = 0; i < kept.size(); ++i) {
    ASSERT_NE((*index)->entry(kept[i].record), nullptr);
    EXPECT_EQ((*index)->entry(kept[i].record)->key, kept[i].key);
    EXPECT_EQ((*index)->of_target(kept[i].record).size(), i % 3);
  }
  for (const StatusSummary& status : kept_statuses)
    ASSERT_NE((*index)->status(status.record), nullptr);
  EXPECT_EQ((*index)->of_group(3).size(), 143u);
  EXPECT_EQ((*index)->of_group(7).size(), 0u);
  EXPECT_EQ((*index)->of_key(0, {0, 5}).size(), 11u);
  EXPECT_EQ((*index)->of_key(0, {0, 6}).size(), 0u);
  EXPECT_EQ((*index)->entry({1, 1}), nullptr);
}

TEST(SummaryIndex, RefusesAnyChangedByte) {
  std::vector<EntrySummary> summaries(3);
  std::vector<StatusSummary> statuses(2);
  const std::string image = SummaryIndex::encode({{100, 16, 5, 0}, 0, 0}, summaries, statuses);
  ASSERT_TRUE(SummaryIndex::parse(image).is_ok());
  for (std::size_t at = 0; at < image.size(); ++at) {
    std::string changed = image;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_EQ(SummaryIndex::parse(changed).status().code(), Code::kCorrupt) << at;
    EXPECT_EQ(SummaryIndex::parse(image.substr(0, at)).status().code(), Code::kCorrupt) << at;
  }
  EXPECT_EQ(SummaryIndex::parse(image + "x").status().code(), Code::kCorrupt);
}

// Of a mapped file, what was cut off in place would end the program with SIGBUS.
TEST(SummaryIndex, AnIndexCutOffInPlaceIsStillThereForWhoHasIt) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.absorb(entries(200)).is_ok());
  ASSERT_TRUE(store.write_index().is_ok());
  const std::vector<std::string> before = served(store);
  ASSERT_EQ(::truncate(folder.file("entries.index").c_str(), 0), 0);
  EXPECT_EQ(served(store), before);
}

TEST(StoreIndex, IsWrittenByWritersAndMakesNoDifference) {
  TemporaryDirectory folder;
  const std::vector<CacheRecord> records = entries(1500);
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.absorb(records).is_ok());
  ASSERT_TRUE(file_exists(folder.file("entries.index")));
  const Result<Put> put = store.put(sample_entry(1 << 21));
  ASSERT_TRUE(store.set_status(new_status(records[3].id, EntryState::kDemoted, "worn")).is_ok());

  const Store indexed = *Store::open(folder.path());
  EXPECT_EQ(indexed.record_set().pending(), 2u);
  EXPECT_TRUE(indexed.has(put->record));
  ASSERT_TRUE(remove_file(folder.file("entries.index")).is_ok());
  const Store plain = *Store::open(folder.path());
  EXPECT_EQ(plain.record_set().pending(), 1502u);
  EXPECT_EQ(served(indexed), served(plain));
  EXPECT_EQ(served(store), served(plain));
  EXPECT_EQ(indexed.history(sample_entry(8).key)->size(),
            plain.history(sample_entry(8).key)->size());
  EXPECT_EQ(indexed.records()->size(), 1502u);
}

TEST(StoreIndex, OfAnotherPastIsNotBelieved) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.absorb(entries(1200)).is_ok());
  const std::string index = *read_file(folder.file("entries.index"));
  ASSERT_TRUE(store.rewrite([n = 0](const CacheRecord&) mutable { return ++n > 100; }).is_ok());
  EXPECT_EQ(Store::open(folder.path())->records()->size(), 1100u);
  ASSERT_TRUE(write_atomic(folder.file("entries.index"), index).is_ok());
  EXPECT_EQ(Store::open(folder.path())->records()->size(), 1100u);
}

// Bits flipped anywhere, in log or index: nothing is served that was not put, what is whole is
// still there, and writing goes on.
// An older Purlin has no summary for records it could not read; its index must not hide them.
TEST(StoreIndex, OfAnOlderPurlinHidesNothing) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.put(sample_entry()).is_ok());
  RecordLog log(folder.file("entries.log"));
  ASSERT_TRUE(log.poll([](const Record&) {}, [] {}).is_ok());
  std::vector<EntrySummary> summaries;
  std::vector<StatusSummary> statuses;
  const std::string image = SummaryIndex::encode({*log.mark(), 0, 1}, summaries, statuses);
  ASSERT_TRUE(write_atomic(folder.file("entries.index"), image).is_ok());
  EXPECT_EQ(Store::open(folder.path())->list().size(), 1u);
}

TEST(StoreIndex, SurvivesFlippedBits) {
  TemporaryDirectory folder;
  const std::vector<CacheRecord> records = entries(200);
  Store first = *Store::open(folder.path());
  ASSERT_TRUE(first.absorb(records).is_ok());
  ASSERT_TRUE(first.write_index().is_ok());
  const std::string log = *read_file(folder.file("entries.log"));
  const std::string index = *read_file(folder.file("entries.index"));
  Random random(5);
  for (int round = 0; round < 12; ++round) {
    const bool flip_log = round % 3 != 2, with_index = round % 2 == 0;
    std::string bytes = flip_log ? log : index;
    const std::size_t at = 16 + random.below(bytes.size() - 16);
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
    ASSERT_TRUE(write_atomic(folder.file("entries.log"), flip_log ? bytes : log).is_ok());
    if (with_index)
      ASSERT_TRUE(write_atomic(folder.file("entries.index"), flip_log ? index : bytes).is_ok());
    else
      ASSERT_TRUE(remove_file(folder.file("entries.index")).is_ok());
    Store store = *Store::open(folder.path());
    const auto found = store.records();
    ASSERT_TRUE(found.is_ok());
    EXPECT_GE(found->size(), records.size() - 1) << "round " << round;
    for (const CacheRecord& record : *found)
      EXPECT_EQ(record_id(*Json::parse(record.payload)), record.id);
    EXPECT_EQ(store.current().size(), 20u);  // the next best of the key stands in
    ASSERT_TRUE(store.reread().is_ok());
    EXPECT_EQ(store.damaged(), found->size() < records.size() ? 1u : 0u);
    // What is missing comes back from any other cache that has it.
    EXPECT_EQ(store.absorb(records)->added, records.size() - found->size());
    EXPECT_EQ(Store::open(folder.path())->records()->size(), records.size());
  }
}

}  // namespace
}  // namespace purlin::cache
