// SPDX-License-Identifier: Apache-2.0
// The hot path returns the same answers as Store::get for every compiled form of the constraints,
// and follows new statuses.
#include "cache/hot/op_index.h"

#include "base/random.h"
#include "cache/layers/layers.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace purlin::cache {
namespace {

const std::vector<std::string> kDimensions = {"M", "N", "K"};

Entry shaped(std::int64_t m, std::int64_t n, std::vector<std::string> constraints,
             std::int64_t bm = 48) {
  Entry entry = sample_entry(m, bm);
  entry.problem = *parse_shape(fmt::format("M={},N={},K=512", m, n));
  entry.bucket_rules = {{"M", *BucketRule::parse("pow2")},
                        {"N", *BucketRule::parse("range:1-64,65-1024,1025-")},
                        {"K", *BucketRule::parse("exact")}};
  entry.key.bucket = *bucket_of(entry.bucket_rules, entry.problem);
  entry.shape_constraints = std::move(constraints);
  return entry;
}

struct Asked {
  Outcome outcome;
  std::string record;
  bool operator==(const Asked&) const = default;
};

Asked ask(const OpIndex& index, const Extents& extents) {
  index.prefetch(extents.data());  // of any shape, at any time
  const OpIndex::Hit hit = index.find(extents.data());
  const OpIndex::Hit again = index.find(extents.data());  // as it is remembered
  EXPECT_TRUE(again.entry == hit.entry && again.outcome == hit.outcome);
  return {hit.outcome, hit.entry == nullptr ? "" : hit.entry->record};
}

Asked ask(const Store& store, const Extents& extents, const LookupOptions& options = {}) {
  const ProblemShape problem =
      *parse_shape(fmt::format("M={},N={},K={}", extents[0], extents[1], extents[2]));
  CacheKey key = sample_entry().key;
  const Result<std::string> bucket = bucket_of(shaped(1, 1, {}).bucket_rules, problem);
  key.bucket = *bucket;
  const Lookup lookup = store.get(key, problem, options);
  return {lookup.outcome, lookup.record};
}

TEST(OpIndex, AgreesWithTheStoreUnderEveryKindOfConstraint) {
  for (const std::vector<std::string>& constraints : std::vector<std::vector<std::string>>{
           {},
           {"M % 16 == 0"},
           {"M % 16 == 0 and N % 8 == 0", "N % 2 == 0"},
           {"N % BM == 0 or N % 16 == 0"},  // 48 is a multiple of 16: 16 decides
           {"N % BM == 0"},                 // no power of two
           {"M >= 100", "N % 4 == 0"},
           {"M % 3 == 0 or N % 4 == 0"},
           {"ceil_div(M, BM) * BM <= 1024 + BM"},
           {"M % (BM * 2) == 0"},
           {"M ** 0.5 > 3"}}) {  // reals: served at its own shape alone
    TemporaryDirectory folder;
    Store store = *Store::open(folder.path());
    ASSERT_TRUE(store.put(shaped(1024, 96, constraints)).is_ok());
    OpIndex index(sample_entry().key, kDimensions, false);
    index.update(store);
    Random random(9);
    int hits = 0;
    for (int i = 0; i < 300; ++i) {
      const Extents extents = {static_cast<std::int64_t>(500 + random.below(600)),
                               static_cast<std::int64_t>(60 + 4 * random.below(300)), 512};
      const Asked fast = ask(index, extents);
      if (constraints == std::vector<std::string>{"M ** 0.5 > 3"}) {
        EXPECT_EQ(fast.outcome, Outcome::kMiss);
        continue;
      }
      EXPECT_EQ(fast, ask(store, extents))
          << constraints.size() << " at " << extents[0] << "," << extents[1];
      hits += fast.outcome == Outcome::kBucket ? 1 : 0;
    }
    EXPECT_EQ(ask(index, {1024, 96, 512}).outcome, Outcome::kExact);
    if (constraints.empty()) {
      EXPECT_GT(hits, 100);
    }
  }
}

// Each number of dimensions has a separate hot path. The entry's check handles multiples that are
// too large for the path's word.
TEST(OpIndex, ChecksMultiplesInAnyNumberOfDimensions) {
  for (std::size_t dimensions = 1; dimensions <= kMaxDimensions; ++dimensions)
    for (const int bits : {0, 3, 7, 8, 15, 16, 20}) {
      Entry entry = sample_entry();
      entry.problem = ProblemShape();
      entry.bucket_rules.clear();
      entry.shape_constraints.clear();
      std::vector<std::string> names;
      for (std::size_t i = 0; i < dimensions; ++i) {
        names.push_back(fmt::format("D{}", i));
        entry.problem.set(names[i], std::int64_t{1} << 24);
        entry.bucket_rules.emplace_back(names[i], *BucketRule::parse("range:1-64,65-"));
        if (bits > 0) entry.shape_constraints.push_back(fmt::format("D{} % {} == 0", i, 1 << bits));
      }
      entry.key.bucket = *bucket_of(entry.bucket_rules, entry.problem);
      TemporaryDirectory folder;
      Store store = *Store::open(folder.path());
      ASSERT_TRUE(store.put(entry).is_ok());
      OpIndex index(entry.key, names, false);
      index.update(store);
      Extents measured{};
      for (std::size_t i = 0; i < dimensions; ++i) measured[i] = std::int64_t{1} << 24;
      EXPECT_EQ(ask(index, measured).outcome, Outcome::kExact);
      for (std::size_t i = 0; i < dimensions; ++i)
        for (int bit = 0; bit < 24; ++bit) {
          Extents extents = measured;
          extents[i] += std::int64_t{1} << bit;
          EXPECT_EQ(ask(index, extents).outcome, bit < bits ? Outcome::kMiss : Outcome::kBucket)
              << dimensions << " dimensions, 2^" << bit << " more than a multiple of 2^" << bits;
        }
    }
}

TEST(OpIndex, FollowsStatusesAndReplacements) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  OpIndex index(sample_entry().key, kDimensions, false);
  index.update(store);
  const Extents measured = {1024, 96, 512}, other = {1000, 96, 512};
  EXPECT_EQ(ask(index, measured).outcome, Outcome::kMiss);

  Entry slow = shaped(1024, 96, {}, 16), fast = shaped(1024, 96, {}, 32);
  fast.time_ms = 0.1;
  const Result<Put> first = store.put(slow);
  index.update(store);
  EXPECT_EQ(ask(index, other), (Asked{Outcome::kBucket, first->record}));
  const Result<Put> second = store.put(fast);
  index.update(store);
  EXPECT_EQ(ask(index, other), (Asked{Outcome::kBucket, second->record}));
  EXPECT_EQ(ask(index, measured), (Asked{Outcome::kExact, second->record}));
  ASSERT_TRUE(store.set_status(new_status(second->record, EntryState::kDemoted, "")).is_ok());
  index.update(store);
  EXPECT_EQ(ask(index, other), (Asked{Outcome::kBucket, first->record}));
  ASSERT_TRUE(store.set_status(new_status(first->record, EntryState::kQuarantined, "")).is_ok());
  index.update(store);
  EXPECT_EQ(ask(index, other).outcome, Outcome::kMiss);
  ASSERT_TRUE(store.set_status(new_status(second->record, EntryState::kActive, "")).is_ok());
  index.update(store);
  EXPECT_EQ(ask(index, measured), (Asked{Outcome::kExact, second->record}));
}

// A thread computes an answer before an update and keeps it after: the index does not serve it.
TEST(OpIndex, AnAnswerOfBeforeAnUpdateIsNotServed) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  OpIndex index(sample_entry().key, kDimensions, false);
  const Result<Put> put = store.put(shaped(1024, 96, {}));
  index.update(store);
  const Extents extents = {1024, 96, 512};
  const OpIndex::Hit old = index.find(extents.data());
  ASSERT_EQ(old.outcome, Outcome::kExact);
  EXPECT_NE(old.epoch, 0u) << "looked up in the table";
  EXPECT_EQ(index.find(extents.data()).epoch, 0u) << "remembered";
  ASSERT_TRUE(store.set_status(new_status(put->record, EntryState::kDemoted, "")).is_ok());
  index.update(store);
  EXPECT_EQ(ask(index, extents).outcome, Outcome::kMiss);
  index.learn(extents.data(), old);
  EXPECT_EQ(ask(index, extents).outcome, Outcome::kMiss);
  ASSERT_TRUE(store.set_status(new_status(put->record, EntryState::kActive, "")).is_ok());
  index.update(store);
  index.learn(extents.data(), old);
  const OpIndex::Hit again = index.find(extents.data());
  EXPECT_EQ(again.outcome, Outcome::kExact);
  EXPECT_NE(again.epoch, 0u) << "looked up anew";
  index.update(store);  // nothing changed: what is remembered stays
  EXPECT_EQ(index.find(extents.data()).epoch, 0u);
}

// More shapes than a memo holds are looked up in the table alone, until they are few again.
TEST(OpIndex, AMemoThatSeldomHasTheAnswerIsNotAsked) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.put(shaped(std::int64_t{1} << 20, 96, {})).is_ok());
  OpIndex index(sample_entry().key, kDimensions, false);
  index.update(store);
  Random random(3);
  const auto asked = [&](std::uint64_t shapes) {  // whether find() had it in its memo
    const Extents extents = {
        (std::int64_t{1} << 20) - static_cast<std::int64_t>(random.below(shapes)), 96, 512};
    const OpIndex::Hit hit = index.find(extents.data());
    EXPECT_NE(hit.entry, nullptr);
    if (random.below(4) == 0) index.learn(extents.data(), hit);
    return hit.epoch == 0;
  };
  const auto of_last = [&](int count, std::uint64_t shapes) {
    int remembered = 0;
    for (int i = 0; i < 20'000; ++i)
      if (asked(shapes) && i >= 20'000 - count) ++remembered;
    return remembered;
  };
  EXPECT_GT(of_last(1000, 50), 990);
  EXPECT_EQ(of_last(1000, 100'000), 0);
  EXPECT_GT(of_last(1000, 50), 990);
}

// Threads ask while entries are withdrawn and come back. Once update() has returned, no thread gets
// an answer from before it.
TEST(OpIndex, WhatAnUpdateWithdrewIsServedToNoThreadAfterIt) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Result<Put> slow = store.put(shaped(1024, 96, {}, 16));
  Entry better = shaped(1024, 96, {}, 32);
  better.time_ms = 0.1;
  const Result<Put> fast = store.put(better);
  OpIndex index(sample_entry().key, kDimensions, false);
  index.update(store);
  // Even: `fast` is served; odd: it is withdrawn. Raised before each update and after it, so that
  // an answer is judged only where no update was under way.
  std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, judged{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t)
    readers.emplace_back([&, t] {
      for (std::int64_t i = t; !stop.load(); ++i) {
        const Extents extents = {600 + i % 400, 96, 512};
        const int before = ended.load();
        const OpIndex::Hit hit = index.find(extents.data());
        if (i % 3 == 0) index.learn(extents.data(), hit);
        if (begun.load() != before) continue;
        const std::string& expected = before % 2 == 0 ? fast->record : slow->record;
        if (hit.entry == nullptr || hit.entry->record != expected) ++wrong;
        ++judged;
      }
    });
  for (int turn = 1; turn <= 40; ++turn) {
    const EntryState state = turn % 2 == 0 ? EntryState::kActive : EntryState::kDemoted;
    ASSERT_TRUE(store.set_status(new_status(fast->record, state, "")).is_ok());
    ++begun;
    index.update(store);
    ++ended;
  }
  while (judged.load() < 1000) std::this_thread::yield();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0);
}

// As entries come, the memo is replaced by larger ones: readers get lines and how many there are
// from the same one.
TEST(OpIndex, AMemoIsReplacedUnderReaders) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  OpIndex index(sample_entry().key, kDimensions, false);
  ASSERT_TRUE(store.put(shaped(1024, 64, {}, 16)).is_ok());
  index.update(store);
  const std::size_t least = index.table_bytes();
  std::atomic<bool> stop{false};
  std::atomic<int> missed{0}, asked{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t)
    readers.emplace_back([&, t] {
      for (std::int64_t i = t; !stop.load(); ++i, ++asked)
        if (index.find(Extents{600 + i % 400, 64, 512}.data()).entry == nullptr) ++missed;
    });
  for (std::int64_t i = 2; i <= 600; ++i) {
    ASSERT_TRUE(store.put(shaped(1024, 64 * i, {}, 16)).is_ok());
    if (i % 10 == 0) index.update(store);
  }
  while (asked.load() < 1000) std::this_thread::yield();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(missed.load(), 0);
  EXPECT_GT(index.table_bytes(), least + 3 * 512 * 64) << "no larger memo came";
}

// Measured at two shapes of a bucket: each serves its own, the larger the rest.
TEST(OpIndex, AShapeMeasuredItselfComesFirst) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Result<Put> large = store.put(shaped(1024, 96, {}, 16));
  Entry smaller = shaped(600, 96, {}, 32);
  smaller.time_ms = 0.01;  // less work, not a better config
  const Result<Put> small = store.put(smaller);
  OpIndex index(sample_entry().key, kDimensions, false);
  index.update(store);
  for (const Extents& extents :
       {Extents{1024, 96, 512}, Extents{600, 96, 512}, Extents{700, 96, 512}})
    EXPECT_EQ(ask(index, extents), ask(store, extents)) << extents[0];
  EXPECT_EQ(ask(index, {600, 96, 512}), (Asked{Outcome::kExact, small->record}));
  EXPECT_EQ(ask(index, {700, 96, 512}), (Asked{Outcome::kBucket, large->record}));
}

Asked ask(const Layers& layers, const Extents& extents) {
  const ProblemShape problem =
      *parse_shape(fmt::format("M={},N={},K={}", extents[0], extents[1], extents[2]));
  CacheKey key = sample_entry().key;
  key.bucket = *bucket_of(shaped(1, 1, {}).bucket_rules, problem);
  const Lookup lookup = layers.get(key, problem);
  return {lookup.outcome, lookup.record};
}

// Random puts and statuses in three layers, one of which appears only later.
TEST(OpIndex, ReadsThroughLayersAsTheCommandDoes) {
  TemporaryDirectory folder;
  const std::vector<std::string> names = {folder.file("mine"), folder.file("node"),
                                          folder.file("fleet")};
  ASSERT_TRUE(write_atomic(names[1], "no directory yet").is_ok());
  Layers layers = *Layers::open(names[0], {names[1], names[2]});
  ASSERT_EQ(layers.stores().size(), 2u);
  OpIndex index(sample_entry().key, kDimensions, false);
  Random random(5);
  std::vector<std::string> records;
  int hits = 0, below = 0;
  for (int turn = 0; turn < 120; ++turn) {
    if (turn == 60) {
      ASSERT_TRUE(remove_file(names[1]).is_ok());
    }
    const std::size_t layer = random.below(3);
    const std::int64_t m = std::int64_t{600} + 8 * random.below(50);
    if ((layer != 1 || turn > 60) && random.below(3) > 0) {
      Entry entry = shaped(m, 96,
                           random.below(3) == 0 ? std::vector<std::string>{"M % 16 == 0"}
                                                : std::vector<std::string>{},
                           16 * (1 + random.below(9)));
      entry.time_ms = 0.1 + 0.01 * static_cast<double>(random.below(90));
      const Result<Put> put = Store::open(names[layer])->put(entry);
      ASSERT_TRUE(put.is_ok()) << put.status().message();
      records.push_back(put->record);
    } else if (!records.empty()) {
      const std::string& about = records[random.below(records.size())];
      ASSERT_TRUE(
          layers
              .set_status(new_status(
                  about, random.below(2) == 0 ? EntryState::kDemoted : EntryState::kActive, ""))
              .is_ok());
    }
    ASSERT_TRUE(layers.refresh().is_ok());
    index.update(layers.stores());
    for (int i = 0; i < 30; ++i) {
      const Extents extents = {static_cast<std::int64_t>(600 + 4 * random.below(100)), 96, 512};
      const Asked fast = ask(index, extents);
      ASSERT_EQ(fast, ask(layers, extents)) << "turn " << turn << " at " << extents[0];
      hits += fast.outcome == Outcome::kMiss ? 0 : 1;
      const OpIndex::Hit hit = index.find(extents.data());
      below += hit.entry != nullptr && hit.entry->layer > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(layers.stores().size(), 3u);
  EXPECT_GT(hits, 1000);
  EXPECT_GT(below, 100);
}

TEST(OpIndex, ComingAndGoingEntriesTakeNoMemory) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  OpIndex index(sample_entry().key, kDimensions, false);
  std::vector<std::string> records;
  for (int i = 0; i < 20; ++i)
    records.push_back(store.put(shaped(1024 << (i % 4), 96 << (i / 4), {}, i))->record);
  index.update(store);
  const std::size_t published = index.published(), bytes = index.table_bytes();
  const Extents extents = {1024, 96, 512};
  for (int turn = 0; turn < 50; ++turn)
    for (const EntryState state : {EntryState::kDemoted, EntryState::kActive}) {
      for (const std::string& record : records)
        ASSERT_TRUE(store.set_status(new_status(record, state, "")).is_ok());
      index.update(store);
      EXPECT_EQ(ask(index, extents).outcome,
                state == EntryState::kActive ? Outcome::kExact : Outcome::kMiss);
    }
  EXPECT_EQ(index.published(), published);
  EXPECT_EQ(index.table_bytes(), bytes);
}

// The index checks every record that it adds: damage loses only the records that it hit.
TEST(OpIndex, TheNextBestStandsInForADamagedRecord) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  Entry better = shaped(1024, 96, {}, 64), worse = shaped(1024, 96, {}, 32),
        other = shaped(64, 96, {}, 16);
  better.time_ms = 0.1;
  worse.time_ms = 0.2;
  const std::string best = store.put(better)->record, next = store.put(worse)->record,
                    apart = store.put(other)->record;
  std::string log = *read_file(folder.file("entries.log"), 1 << 20);
  const std::size_t at = log.find("\"time_ms\":0.1,");
  ASSERT_NE(at, std::string::npos);
  for (const bool damaged : {false, true}) {
    log[at + 12] = damaged ? '3' : '1';
    ASSERT_TRUE(write_atomic(folder.file("entries.log"), log).is_ok());
    OpIndex index(sample_entry().key, kDimensions, false);
    index.update(store);  // which read the log before
    EXPECT_EQ(ask(index, {1024, 96, 512}).record, damaged ? next : best);
    EXPECT_EQ(ask(index, {64, 96, 512}).record, apart);
  }
}

TEST(OpIndex, AValidationStandsForItsDriver) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Result<Put> put = store.put(shaped(1024, 96, {}));
  CacheKey wanted = sample_entry().key;
  wanted.driver = "590.01";
  OpIndex strict(wanted, kDimensions, false), lenient(wanted, kDimensions, true);
  strict.update(store);
  lenient.update(store);
  const Extents extents = {1024, 96, 512};
  EXPECT_EQ(ask(strict, extents).outcome, Outcome::kMiss);
  EXPECT_EQ(ask(lenient, extents).outcome, Outcome::kTransferred);
  EntryStatus validated = new_status(put->record, EntryState::kValidated, "still wins");
  validated.driver = wanted.driver;
  validated.toolkit = wanted.toolkit;
  ASSERT_TRUE(store.set_status(validated).is_ok());
  strict.update(store);
  lenient.update(store);
  EXPECT_EQ(ask(strict, extents).outcome, Outcome::kExact);
  EXPECT_EQ(ask(lenient, extents).outcome, Outcome::kExact);
}

}  // namespace
}  // namespace purlin::cache
