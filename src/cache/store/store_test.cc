// SPDX-License-Identifier: Apache-2.0
#include "cache/store/store.h"

#include "base/text.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace purlin::cache {
namespace {

std::string text_of(const Lookup& lookup) { return join(lookup.explain, "\n"); }

TEST(Entry, JsonRoundTrips) {
  Entry entry = sample_entry();
  entry.bucket_regret = {{*parse_shape("M=600,N=1024,K=512"), 1.04}};
  entry.default_config.set("BM", 32);
  entry.runner_up.set("BM", 128);
  const Json json = to_json(entry);
  const Result<Entry> back = entry_from_json(*Json::parse(json.dump()));
  ASSERT_TRUE(back.is_ok()) << back.status().message();
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->config, entry.config);
  EXPECT_EQ(back->samples[1].sm_clock_mhz, 1965);
  EXPECT_EQ(back->bucket_regret, entry.bucket_regret);
  EXPECT_EQ(back->bucket_rules, entry.bucket_rules);
}

TEST(Entry, RefusesWhatItCannotMean) {
  const Json good = to_json(sample_entry());
  const auto with = [&](std::string_view key, Json value) {
    Json json = good;
    json.set(key, std::move(value));
    return entry_from_json(json).status();
  };
  EXPECT_EQ(with("schema", "purlin.report/1").code(), Code::kInvalid);
  EXPECT_EQ(with("schema", "purlin.entry/2").code(), Code::kCorrupt);
  EXPECT_EQ(with("key", nullptr).code(), Code::kInvalid);
  EXPECT_EQ(with("config", 3).code(), Code::kInvalid);
  EXPECT_EQ(with("time_ms", -1).code(), Code::kInvalid);
  EXPECT_EQ(with("bucket_regret", Json::object({{"M=8", -1}})).code(), Code::kInvalid);
  EXPECT_EQ(with("bucket_regret", Json::object({{"M=x", 1}})).code(), Code::kInvalid);
  EXPECT_EQ(with("time_ms", "fast").code(), Code::kInvalid);
  // What would win for good, and what is no launch of a program.
  for (const char* key : {"time_ms", "default_time_ms", "runner_up_ms"}) {
    EXPECT_EQ(with(key, 1e-300).code(), Code::kInvalid) << key;
    EXPECT_EQ(with(key, 1e300).code(), Code::kInvalid) << key;
    EXPECT_TRUE(with(key, 0).is_ok()) << key;
  }
  for (const double ms : {-1.0, 1e-300, 1e300})
    EXPECT_EQ(with("samples_ms", Json::array({ms})).code(), Code::kInvalid) << ms;
  for (const char* time : {"yesterday", "1969-01-01T00:00:00Z", "2300-01-01T00:00:00Z"})
    EXPECT_EQ(with("recorded_at", time).code(), Code::kInvalid) << time;
  EXPECT_TRUE(with("recorded_at", "2261-01-01T00:00:00Z").is_ok());
  EXPECT_EQ(with("evaluations", -4).code(), Code::kInvalid);
  EXPECT_EQ(with("evaluations", std::int64_t{1} << 40).code(), Code::kInvalid);
  for (const char* key : {"config", "default_config", "runner_up"}) {
    EXPECT_EQ(with(key, Json::object({{"B M", 64}})).code(), Code::kInvalid) << key;
    EXPECT_EQ(with(key, Json::object({{"BM", "64 -DEVIL=1"}})).code(), Code::kInvalid) << key;
    EXPECT_EQ(with(key, Json::object({{"BM", 0x1p70}})).code(), Code::kInvalid) << key;
  }
  EXPECT_EQ(with("ties", Json::array({Json::object({{"", 1}})})).code(), Code::kInvalid);
  EXPECT_EQ(with("problem", Json::object({{"M,N", 64}})).code(), Code::kInvalid);
  EXPECT_EQ(with("bucket_rules", Json::object({{"M", "pow3"}})).code(), Code::kInvalid);
  EXPECT_EQ(with("samples_clock_mhz", Json::array({1, 2})).code(), Code::kInvalid);
  Json key = good["key"];
  key.set("backend", "");
  EXPECT_EQ(with("key", key).code(), Code::kInvalid);
  key = good["key"];
  key.set("kernel", "a\n::error::b");
  EXPECT_EQ(with("key", key).code(), Code::kInvalid);
  key = good["key"];
  key.set("policy", "hot");
  EXPECT_EQ(with("key", key).code(), Code::kInvalid);
}

TEST(CacheKey, EveryFieldChangesTheId) {
  const CacheKey key = sample_entry().key;
  const Json json = to_json(key);
  for (const auto& [name, value] : key.fields()) {
    Json other = json;
    other.set(name, value + "x");
    EXPECT_NE(key_from_json(other)->id(), key.id()) << name;
  }
  EXPECT_EQ(key_from_json(json)->id(), key.id());
}

TEST(Store, ExactAndBucketHits) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Entry entry = sample_entry(1024);
  ASSERT_TRUE(store.put(entry).is_ok());
  EXPECT_EQ(store.get(entry.key, entry.problem).outcome, Outcome::kExact);

  const Entry other = sample_entry(1000);  // the same bucket: tuned once, no further trial
  const Lookup lookup = store.get(other.key, other.problem);
  EXPECT_EQ(lookup.outcome, Outcome::kBucket);
  ASSERT_TRUE(lookup.entry.has_value());
  EXPECT_EQ(lookup.entry->config, entry.config);
  EXPECT_NE(text_of(lookup).find("same bucket"), std::string::npos) << text_of(lookup);
}

// A difference in any field that decides is a miss, and the explanation names that field.
class EachField : public testing::TestWithParam<const char*> {};

TEST_P(EachField, DecidesTheLookup) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  const Entry entry = sample_entry();
  ASSERT_TRUE(store.put(entry).is_ok());
  Json json = to_json(entry.key);
  json.set(GetParam(), "another");
  const Lookup lookup = store.get(*key_from_json(json), entry.problem);
  EXPECT_EQ(lookup.outcome, Outcome::kMiss);
  EXPECT_FALSE(lookup.entry.has_value());
  EXPECT_NE(text_of(lookup).find(fmt::format("{}: 'another' wanted", GetParam())),
            std::string::npos)
      << text_of(lookup);
}

INSTANTIATE_TEST_SUITE_P(Store, EachField,
                         testing::Values("op", "kernel", "dtype", "bucket", "backend", "arch",
                                         "device", "toolkit", "driver", "source_hash", "policy",
                                         "layout"),
                         [](const auto& field) { return std::string(field.param); });

TEST(Store, AnEntryOfBeforeLayoutsWereRecordedStandsForAnyUntilOneThatStatesIt) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  Entry old = sample_entry(1024, 32);
  old.key.layout = "";
  CacheKey with = old.key;
  with.layout = "A=row";
  EXPECT_NE(with.id(), old.key.id());
  ASSERT_TRUE(store.put(old).is_ok());
  const CacheKey wanted = sample_entry().key;
  const Lookup first = store.get(wanted, old.problem);
  EXPECT_EQ(first.outcome, Outcome::kExact);
  EXPECT_NE(text_of(first).find("layout: 'A=row,B=row,C=row' wanted, not recorded"),
            std::string::npos)
      << text_of(first);
  Entry stated = sample_entry(1024, 128);
  stated.time_ms *= 2;  // slower, but known to be about these buffers
  ASSERT_TRUE(store.put(stated).is_ok());
  EXPECT_EQ(store.get(wanted, old.problem).entry->config, stated.config);
  CacheKey other = wanted;
  other.layout = "A=column,B=row,C=row";
  EXPECT_EQ(store.get(other, old.problem).entry->config, old.config);
}

TEST(Store, TransfersOnlyOnRequestAndNeverAcrossArchs) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  Entry a100 = sample_entry();
  a100.key.arch = "sm_80";
  a100.key.device = "NVIDIA A100";
  ASSERT_TRUE(store.put(a100).is_ok());
  const Entry wanted = sample_entry();
  const LookupOptions allow{.allow_transferred = true};
  EXPECT_EQ(store.get(wanted.key, wanted.problem, allow).outcome, Outcome::kMiss);

  Entry older = sample_entry(1024, 32);
  older.key.driver = "550.54";
  older.key.device = "NVIDIA H100";
  Entry nearer = sample_entry(1024, 128);
  nearer.key.driver = "570.10";
  ASSERT_TRUE(store.put(nearer).is_ok());
  ASSERT_TRUE(store.put(older).is_ok());
  EXPECT_EQ(store.get(wanted.key, wanted.problem).outcome, Outcome::kMiss);
  const Lookup lookup = store.get(wanted.key, wanted.problem, allow);
  EXPECT_EQ(lookup.outcome, Outcome::kTransferred);
  ASSERT_TRUE(lookup.entry.has_value());
  EXPECT_EQ(lookup.entry->config, nearer.config);  // one field off, not two
}

TEST(Store, TheArchIsComparedEvenWhenNotStated) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.put(sample_entry()).is_ok());
  CacheKey wanted = sample_entry().key;
  wanted.arch = "";
  const LookupOptions allow{.allow_transferred = true};
  EXPECT_EQ(store.get(wanted, sample_entry().problem, allow).outcome, Outcome::kMiss);
}

TEST(Store, AFieldNotStatedIsNotCompared) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  Entry old = sample_entry(1024, 32), fresh = sample_entry(1024, 128);
  fresh.key.source_hash = "changed";
  fresh.recorded_at = "2026-11-21T12:00:00Z";
  ASSERT_TRUE(store.put(old).is_ok());
  ASSERT_TRUE(store.put(fresh).is_ok());
  CacheKey wanted = old.key;
  wanted.source_hash = wanted.driver = "";
  const Lookup lookup = store.get(wanted, old.problem);
  EXPECT_EQ(lookup.outcome, Outcome::kExact);
  EXPECT_EQ(lookup.entry->config, fresh.config);  // the newest
}

TEST(Store, TheBestWinsAndHistoryIsKept) {
  TemporaryDirectory folder;
  Store writer = *Store::open(folder.path()), reader = *Store::open(folder.path());
  for (const int bm : {16, 32, 64}) {
    Entry entry = sample_entry(1024, bm);
    entry.time_ms = bm == 32 ? 0.25 : 0.5;
    ASSERT_TRUE(writer.put(entry).is_ok());
  }
  const CacheKey key = sample_entry().key;
  EXPECT_TRUE(reader.list().empty());
  ASSERT_TRUE(reader.refresh().is_ok());
  ASSERT_EQ(reader.list().size(), 1u);
  EXPECT_EQ(reader.list()[0].config, sample_entry(1024, 32).config);
  const auto history = reader.history(key);
  ASSERT_TRUE(history.is_ok());
  ASSERT_EQ(history->size(), 3u);
  EXPECT_EQ((*history)[0].entry.config, sample_entry(1024, 16).config);
  EXPECT_TRUE(reader.history(sample_entry(4096).key)->empty());
}

TEST(Store, ADirectoryThatIsNotThereIsEmptyUntilAPut) {
  TemporaryDirectory folder;
  const std::string path = folder.file("deep/er");
  Store store = *Store::open(path);
  EXPECT_TRUE(store.list().empty());
  EXPECT_FALSE(file_exists(path));
  ASSERT_TRUE(store.put(sample_entry()).is_ok());
  EXPECT_EQ(Store::open(path)->list().size(), 1u);
}

// A full disk, at any byte of an append of several records: refused, and the file is unchanged.
TEST(Store, AFullDiskLeavesTheFileAsItWas) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  ASSERT_TRUE(store.put(sample_entry()).is_ok());
  const std::string before = *read_file(folder.file("entries.log"));
  std::vector<CacheRecord> more;
  for (int i = 2; i < 8; ++i) more.push_back(make_record(sample_entry(1024, i)));
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t room : {0u, 1u, 31u, 32u, 33u, 500u, 2000u, 4000u}) {
    rlimit limit = old;
    limit.rlim_cur = before.size() + room;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const Result<Absorbed> absorbed = store.absorb(more);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
    EXPECT_EQ(absorbed.status().code(), Code::kIo) << room;
    EXPECT_EQ(*read_file(folder.file("entries.log")), before) << room;
  }
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(store.absorb(more)->added, more.size());
  EXPECT_EQ(Store::open(folder.path())->records()->size(), more.size() + 1);
}

TEST(Store, ReadsADirectoryItMayNotWrite) {
  TemporaryDirectory folder;
  ASSERT_TRUE(Store::open(folder.path())->put(sample_entry()).is_ok());
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  ASSERT_EQ(::chmod(folder.file("entries.log").c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder.file("entries.log.lock").c_str(), 0444), 0);
  const uid_t user = ::geteuid();
  if (user == 0) {  // root may write anywhere
    ASSERT_EQ(::seteuid(65534), 0);
  }
  Store store = *Store::open(folder.path());
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.put(sample_entry()).status().code(), Code::kIo);
  EXPECT_EQ(store.check_writable().code(), Code::kIo);
  ASSERT_EQ(::seteuid(user), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
}

TEST(Store, SaysWhereItCannotWrite) {
  TemporaryDirectory folder;
  ASSERT_TRUE(write_atomic(folder.file("plain"), "x").is_ok());
  EXPECT_EQ(Store::open(folder.file("plain")).status().code(), Code::kIo);
  Store below = *Store::open(folder.file("plain/below"));
  const Status status = below.put(sample_entry()).status();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find(folder.file("plain/below")), std::string::npos);
}

// A whole record that this version does not understand is skipped and counted, and disturbs no
// other record.
TEST(Store, SkipsRecordsOfANewerPurlin) {
  TemporaryDirectory folder;
  Json newer = to_json(sample_entry(4096));
  newer.set("schema", "purlin.entry/9");
  std::ofstream(folder.file("entries.log"), std::ios::binary)
      << encode_log_header() << encode_record(1, newer.dump()) << encode_record(7, "a later kind")
      << encode_record(1, "not json") << encode_record(1, to_json(sample_entry()).dump());
  Store store = *Store::open(folder.path());
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.newer(), 2u);
  EXPECT_EQ(store.damaged(), 1u);
}

TEST(Store, DoesNotAcknowledgeWhatCannotBeReadBack) {
  TemporaryDirectory folder;
  Store store = *Store::open(folder.path());
  Entry entry = sample_entry();
  entry.key.arch = "";
  EXPECT_TRUE(store.put(entry).is_ok());  // CPUs may have no arch
  entry.key.op = "";
  EXPECT_EQ(store.put(entry).status().code(), Code::kInvalid);
  EXPECT_EQ(store.list().size(), 1u);
}

}  // namespace
}  // namespace purlin::cache
