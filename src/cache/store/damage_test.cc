// SPDX-License-Identifier: Apache-2.0
// Damage of the log under an index that is intact: counted and named by every reader of all
// records, and never hidden by what a writer does afterwards.
#include "cache/store/store.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace purlin::cache {
namespace {

std::vector<CacheRecord> damage_records(int count) {
  std::vector<CacheRecord> records;
  for (int i = 0; i < count; ++i) records.push_back(make_record(sample_entry(1024, i + 1)));
  return records;
}

class Damage : public testing::Test {
 protected:
  void SetUp() override {
    Store store = *Store::open(folder_.path());
    ASSERT_TRUE(store.absorb(records_).is_ok());
    ASSERT_TRUE(store.write_index().is_ok());
  }
  std::string log() const { return folder_.file("entries.log"); }
  // Changes one byte of the payloads of these records.
  void damage(const std::vector<std::size_t>& which) const {
    std::string bytes = *read_file(log());
    for (const std::size_t i : which) {
      const std::size_t at = bytes.find(records_[i].payload);
      ASSERT_NE(at, std::string::npos);
      bytes[at + 40] = static_cast<char>(bytes[at + 40] ^ 1);
    }
    ASSERT_TRUE(write_atomic(log(), bytes).is_ok());
  }
  void cut(std::uintmax_t left) const { std::filesystem::resize_file(log(), left); }
  Store examined() const {
    Store store = *Store::open(folder_.path());
    EXPECT_TRUE(store.examine().is_ok());
    return store;
  }
  static std::set<std::string> names(const Store& store) {
    std::set<std::string> all;
    for (const LostRecord& lost : store.lost()) all.insert(lost.record);
    return all;
  }
  TemporaryDirectory folder_;
  const std::vector<CacheRecord> records_ = damage_records(40);
};

TEST_F(Damage, UnderAnIntactIndexIsNamed) {
  damage({3, 7, 8, 30});
  Store store = examined();
  EXPECT_EQ(store.damaged(), 4u);
  EXPECT_EQ(names(store), (std::set<std::string>{records_[3].id, records_[7].id, records_[8].id,
                                                 records_[30].id}));
  EXPECT_EQ(store.records()->size(), 36u);
  EXPECT_EQ(store.record_set().entries(), 36u) << "no reader may count on the lost ones";
}

TEST_F(Damage, OfNothingIsNoDamage) {
  Store store = examined();
  EXPECT_EQ(store.damaged(), 0u);
  EXPECT_TRUE(store.lost().empty());
}

TEST_F(Damage, ALookupNamesTheRecordsThatItWanted) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < records_.size(); ++i) all.push_back(i);
  damage(all);
  const Store store = *Store::open(folder_.path());
  const Lookup lookup = store.get(sample_entry().key, sample_entry().problem);
  EXPECT_EQ(lookup.outcome, Outcome::kMiss);
  EXPECT_EQ(lookup.damaged.size(), records_.size());
}

// The index does not fit a log that was cut, and is still the only one who knows what it held.
TEST_F(Damage, ALostTailIsNamed) {
  const std::size_t whole = read_file(log())->find(records_[20].payload) - 32;
  for (const std::size_t at : {whole, whole + 5, whole + 40}) {
    cut(std::min<std::uintmax_t>(at, std::filesystem::file_size(log())));
    const Store store = *Store::open(folder_.path());
    EXPECT_EQ(store.damaged(), 20u) << at;
    EXPECT_EQ(names(store).count(records_[39].id), 1u);
  }
}

TEST_F(Damage, SurvivesANewIndexAndWritersThatKnowNothing) {
  damage({5});
  ASSERT_TRUE(Store::open(folder_.path())->reread().is_ok());
  ASSERT_TRUE(Store::open(folder_.path())->put(sample_entry(2048)).is_ok());
  ASSERT_TRUE(Store::open(folder_.path())->write_index().is_ok());
  EXPECT_EQ(names(examined()), std::set<std::string>{records_[5].id});
  ASSERT_TRUE(
      Store::open(folder_.path())->rewrite([](const CacheRecord&) { return true; }).is_ok());
  EXPECT_EQ(names(examined()), std::set<std::string>{records_[5].id});
  Store store = examined();
  ASSERT_TRUE(store.forget_lost().is_ok());
  EXPECT_EQ(examined().damaged(), 0u);
}

TEST_F(Damage, EndsWithTheRecordsReturn) {
  damage({1, 2});
  Store store = examined();
  EXPECT_EQ(store.absorb(std::vector<CacheRecord>{records_[1]})->added, 1u);
  EXPECT_EQ(names(examined()), std::set<std::string>{records_[2].id});
  EXPECT_EQ(examined().absorb(records_)->added, 1u);
  EXPECT_TRUE(examined().lost().empty());
  EXPECT_EQ(Store::open(folder_.path())->records()->size(), records_.size());
}

TEST_F(Damage, WhatARewriteDropsIsNotLost) {
  Store reader = *Store::open(folder_.path());
  ASSERT_TRUE(Store::open(folder_.path())
                  ->rewrite([&](const CacheRecord& r) { return r.id != records_[4].id; })
                  .is_ok());
  ASSERT_TRUE(reader.examine().is_ok());
  EXPECT_TRUE(reader.lost().empty());
  EXPECT_TRUE(examined().lost().empty());
}

}  // namespace
}  // namespace purlin::cache
