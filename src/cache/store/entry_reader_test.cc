// SPDX-License-Identifier: Apache-2.0
// Reading in bulk gives the same entry for every record as reading it as JSON, except the fields
// that lookups do not need.
#include "cache/store/entry_reader.h"

#include "base/files.h"
#include "base/random.h"
#include "cache/store/store.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unistd.h>

namespace purlin::cache {
namespace {

Entry full_entry() {
  Entry entry = sample_entry();
  entry.shape_constraints = {"N % BM == 0", "M <= device_max_threads * 4"};
  entry.facts.set("device_max_threads", 1024);
  entry.default_config = entry.runner_up = entry.config;
  entry.default_config.set("BM", 32);
  entry.bucket_regret = {{*parse_shape("M=600,N=1024,K=512"), 1.25}};
  entry.time_ms = 0.1;
  return entry;
}

// A log of one record, which the reader is asked for by `summary`.
class EntryReaderTest : public ::testing::Test {
 protected:
  EntrySummary write(const std::string& payload, std::uint16_t kind = 1) {
    const std::string header = encode_log_header();
    EXPECT_TRUE(write_atomic(log_, header + encode_record(kind, payload)).is_ok());
    const Result<Json> json = Json::parse(payload);
    return summary_of(full_entry(), json.is_ok() ? Id128::parse(record_id(*json)) : Id128{1, 2},
                      header.size());
  }
  Result<Entry> read(const EntrySummary& summary, EntryParts parts = EntryParts::kAll) {
    return EntryReader(log_, parts, constraints_).read(summary);
  }

  TemporaryDirectory folder_;
  const std::string log_ = folder_.file("entries.log");
  ConstraintCache constraints_;
};

TEST_F(EntryReaderTest, ReadsAllThatWasWritten) {
  const Entry entry = full_entry();
  const EntrySummary summary = write(to_json(entry).dump());
  EXPECT_EQ(to_json(*read(summary)).dump(), to_json(entry).dump());
  // What is served is the same; the rest is left out.
  Entry served = *read(summary, EntryParts::kServed);
  EXPECT_TRUE(served.samples.empty() && served.ties.empty() && served.bucket_regret.empty());
  served.samples = entry.samples;
  served.ties = entry.ties;
  served.bucket_regret = entry.bucket_regret;
  served.evaluations = entry.evaluations;
  served.tool_version = entry.tool_version;
  served.strategy = entry.strategy;
  served.host = entry.host;
  served.user = entry.user;
  EXPECT_EQ(to_json(served).dump(), to_json(entry).dump());
}

TEST_F(EntryReaderTest, ReadsWhatIsNotAsPurlinWritesIt) {
  Entry entry = full_entry();
  for (const char* user : {"Zo\xC3\xAB", "a \"b\" \\ c\n", "plain"}) {
    entry.user = user;
    EXPECT_EQ(to_json(*read(write(to_json(entry).dump()))).dump(), to_json(entry).dump());
    EXPECT_EQ(to_json(*read(write(to_json(entry).dump(2)))).dump(), to_json(entry).dump());
  }
  // The same value in other digits, and a key that is repeated, of which the last counts.
  std::string payload = to_json(entry).dump();
  const std::size_t at = payload.find("\"time_ms\":0.1");
  ASSERT_NE(at, std::string::npos);
  payload.replace(at, 13, "\"time_ms\":9.5,\"time_ms\":1.00e-1");
  EXPECT_EQ(read(write(payload))->time_ms, 0.1);
}

TEST_F(EntryReaderTest, AnotherRecordThanTheSummarysIsRefused) {
  EntrySummary summary = write(to_json(full_entry()).dump());
  summary.record.low ^= 1;
  const Status status = read(summary).status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("another record"), std::string::npos);
  summary.record = {};
  EXPECT_EQ(read(summary).status().code(), Code::kCorrupt);
}

TEST_F(EntryReaderTest, EachDamagedByteIsFound) {
  const EntrySummary summary = write(to_json(full_entry()).dump());
  const std::string whole = *read_file(log_, 1 << 20);
  for (std::size_t at = encode_log_header().size(); at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    ASSERT_TRUE(write_atomic(log_, damaged).is_ok());
    EXPECT_EQ(read(summary).status().code(), Code::kCorrupt) << at;
  }
  for (const std::size_t length : {whole.size() - 1, whole.size() / 2, std::size_t{20}}) {
    ASSERT_TRUE(write_atomic(log_, whole.substr(0, length)).is_ok());
    EXPECT_EQ(read(summary).status().code(), Code::kCorrupt) << length;
  }
}

TEST_F(EntryReaderTest, WhatIsWrongWithAnEntryIsSaid) {
  Json json = to_json(full_entry());
  json.set("shape_constraints", Json::array({"N %% 2"}));
  EXPECT_EQ(read(write(json.dump())).status().code(), Code::kInvalid);
  json = to_json(full_entry());
  json.set("schema", "purlin.entry/99");
  EXPECT_EQ(read(write(json.dump())).status().code(), Code::kCorrupt);
  EXPECT_FALSE(read(write("{\"a\":")).is_ok());
  ASSERT_TRUE(remove_file(log_).is_ok());
  EXPECT_EQ(read(EntrySummary()).status().code(), Code::kIo);
}

// Longer than what is read at once.
TEST_F(EntryReaderTest, ReadsLongRecords) {
  Entry entry = full_entry();
  for (int i = 0; i < 5000; ++i) entry.samples.push_back({0.25 + i, 1980});
  EXPECT_EQ(to_json(*read(write(to_json(entry).dump()))).dump(), to_json(entry).dump());
}

// In any order, after any other reads, and at places without a record.
TEST_F(EntryReaderTest, ReadsManyInAnyOrder) {
  std::string bytes = encode_log_header();
  std::vector<EntrySummary> summaries;
  for (int i = 0; i < 500; ++i) {
    Entry entry = sample_entry(64 + i, i);
    entry.samples.resize(static_cast<std::size_t>(i) % 97);
    const CacheRecord record = make_record(entry);
    summaries.push_back(summary_of(entry, Id128::parse(record.id), bytes.size()));
    bytes += encode_record(1, record.payload);
  }
  ASSERT_TRUE(write_atomic(log_, bytes).is_ok());
  EntryReader reader(log_, EntryParts::kServed, constraints_);
  for (const std::uint64_t nowhere :
       {bytes.size(), bytes.size() - 5, UINT64_MAX, UINT64_MAX - 40}) {
    EntrySummary summary = summaries[0];
    ASSERT_TRUE(reader.read(summary).is_ok());
    summary.offset = nowhere;
    EXPECT_FALSE(reader.read(summary).is_ok());
  }
  const auto read_all = [&] {
    for (const EntrySummary& summary : summaries) {
      const Result<Entry> entry = reader.read(summary);
      ASSERT_TRUE(entry.is_ok()) << entry.status().message();
      EXPECT_EQ(problem_hash(entry->problem), summary.problem);
    }
  };
  read_all();
  std::reverse(summaries.begin(), summaries.end());
  read_all();
  Random(3).shuffle(summaries);
  read_all();
}

// Where one offset cannot be read, it cannot be the next time, either, and others can.
TEST_F(EntryReaderTest, AFailedReadLeavesNothingBehind) {
  const EntrySummary summary = write(to_json(full_entry()).dump());
  RecordReader reader(log_);
  constexpr std::uint64_t kBeyond = (std::uint64_t{1} << 63) + 5;  // no file is so long
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(reader.read(kBeyond).status().code(), Code::kIo);
    EXPECT_EQ(reader.read(kBeyond + 8).status().code(), Code::kIo);
  }
  EXPECT_TRUE(reader.read(summary.offset).is_ok());
}

// A file that is cut off between the reading of a record's frame and of its payload.
TEST_F(EntryReaderTest, AFileThatBecomesShorterIsDamaged) {
  std::string bytes = encode_log_header();
  const std::size_t first = bytes.size();
  bytes += encode_record(1, std::string(1900, 'a'));
  const std::size_t second = bytes.size();
  bytes += encode_record(1, std::string(5000, 'b'));
  ASSERT_TRUE(write_atomic(log_, bytes).is_ok());
  RecordReader reader(log_);
  ASSERT_TRUE(reader.read(first).is_ok());
  ASSERT_EQ(::truncate(log_.c_str(), static_cast<off_t>(second)), 0);
  EXPECT_EQ(reader.read(second).status().code(), Code::kCorrupt);
}

TEST_F(EntryReaderTest, ReadsTheFileThatStoodThere) {
  const Entry entry = full_entry();
  const EntrySummary summary = write(to_json(entry).dump());
  EntryReader reader(log_, EntryParts::kAll, constraints_);
  ASSERT_TRUE(write_atomic(log_, "something else").is_ok());
  EXPECT_EQ(to_json(*reader.read(summary)).dump(), to_json(entry).dump());
}

TEST(ConstraintCache, AreParsedOnceAndBounded) {
  ConstraintCache texts;
  const Expression::Node* const root = texts.parse("M % 4 == 0")->root();
  EXPECT_EQ(texts.parse("M % 4 == 0")->root(), root);
  EXPECT_FALSE(texts.parse("M %% 4").is_ok());
  EXPECT_EQ(texts.size(), 2u);
  for (std::size_t i = 0; i < 3 * ConstraintCache::kMax; ++i) {
    EXPECT_TRUE(texts.parse(fmt::format("M > {}", i)).is_ok());
    EXPECT_LE(texts.size(), ConstraintCache::kMax);
  }
  ConstraintCache long_ones;
  for (int i = 0; i < 20; ++i) {
    const std::string text(ConstraintCache::kMaxBytes / 4, static_cast<char>('a' + i));
    long_ones.parse(text);
    EXPECT_LE(long_ones.size(), 4u);
  }
}

TEST(RecordIds, AreThoseOfTheDocument) {
  const Entry entry = full_entry();
  JsonScan scan;
  RecordIds ids;
  for (const std::string& text :
       {to_json(entry).dump(), to_json(entry).dump(2), std::string("{}"),
        std::string(R"({"b":[{"z":1,"a":{"d":[],"c":2.50}},-3.5],"a":null})"),
        std::string(R"({"b":[[1,"x y"], [2 ,3]],"a":[[{"z":1,"a":true}]],"c":[1,2.5,[]]})")}) {
    ASSERT_TRUE(scan.scan(text)) << text;
    const Id128 id = Id128::parse(record_id(*Json::parse(text)));
    EXPECT_EQ(ids.of(scan.root()), id) << text;
    // Reals that Json would write otherwise are not judged as they stand.
    EXPECT_EQ(ids.agrees(scan.root(), id), text.find("2.50") == std::string::npos) << text;
    EXPECT_FALSE(ids.agrees(scan.root(), {id.high, id.low ^ 1}));
  }
  const std::string repeated = R"({"a":1,"b":{"x":1,"x":2}})";
  ASSERT_TRUE(scan.scan(repeated));
  EXPECT_EQ(ids.of(scan.root()), Id128());
  EXPECT_FALSE(ids.agrees(scan.root(), Id128()));
}

// Without an index every record is read again, in each of its forms.
TEST(StoreReading, SummariesAreTheSameInAnyForm) {
  Entry entry = full_entry();
  TemporaryDirectory plain, other;
  ASSERT_TRUE(Store::open(plain.path())->put(entry).is_ok());
  const std::string text = to_json(entry).dump(2) + "\n";
  std::string repeated = to_json(entry).dump();
  repeated.insert(1, "\"time_ms\":7,");
  for (const std::string& payload : {text, repeated}) {
    ASSERT_TRUE(
        write_atomic(other.file("entries.log"), encode_log_header() + encode_record(1, payload))
            .is_ok());
    const Store a = *Store::open(plain.path()), b = *Store::open(other.path());
    ASSERT_EQ(b.list().size(), 1u);
    EXPECT_EQ(to_json(b.list()[0]).dump(), to_json(a.list()[0]).dump());
    if (payload == text) {
      EXPECT_TRUE(b.has(a.current()[0].record));
    }
  }
}

}  // namespace
}  // namespace purlin::cache
