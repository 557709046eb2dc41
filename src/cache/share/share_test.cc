// SPDX-License-Identifier: Apache-2.0
#include "cache/share/share.h"

#include "blobs/testing.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::cache {
namespace {

std::vector<CacheRecord> records_of(int from, int to) {
  std::vector<CacheRecord> records;
  for (int i = from; i < to; ++i) records.push_back(make_record(sample_entry(i + 1)));
  return records;
}
std::set<std::string> ids_of(const std::vector<CacheRecord>& records) {
  std::set<std::string> ids;
  for (const CacheRecord& record : records) ids.insert(record.id);
  return ids;
}

// A machine with its own records on a shared memory.
struct Machine {
  explicit Machine(blobs::Memory& memory, ShareOptions options = {})
      : blobs(memory), share(blobs, clock, 7, std::move(options)) {}
  Result<PullReport> pull() {
    return share.pull([&](const std::string& id) { return have.count(id) > 0; },
                      [&](const std::vector<CacheRecord>& records) {
                        for (const CacheRecord& record : records) have.insert(record.id);
                        return Status::ok();
                      });
  }
  std::set<std::string> have;
  FakeClock clock;
  blobs::MemoryBlobs blobs;
  Share share;
};

ShareIndex index_of(const blobs::Memory& memory) {
  return decode_index(memory.objects.at("index.json").bytes).value();
}

TEST(Share, PushAndPull) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  EXPECT_EQ(b.pull().status().code(), Code::kNotFound);
  const PushReport pushed = a.share.push(records_of(0, 10)).value();
  EXPECT_EQ(pushed.pushed, 10u);
  EXPECT_EQ(pushed.generation, 1u);
  EXPECT_EQ(memory.objects.size(), 2u) << "an index and a segment; the probe is gone";
  const PushReport again = a.share.push(records_of(5, 12)).value();
  EXPECT_EQ(again.pushed, 2u);
  EXPECT_EQ(again.known, 5u);
  EXPECT_EQ(a.share.push(records_of(0, 12))->segments, 0u);
  EXPECT_EQ(b.pull()->records, 12u);
  EXPECT_EQ(b.have, ids_of(records_of(0, 12)));
}

TEST(Share, NothingIsFetchedTwice) {
  blobs::Memory memory;
  TemporaryDirectory memo;
  Machine a(memory), b(memory, {.memo_directory = memo.file("share")});
  ASSERT_TRUE(a.share.push(records_of(0, 10)).is_ok());
  EXPECT_EQ(b.pull()->fetched, 1u);
  EXPECT_EQ(b.pull()->fetched, 0u);
  ASSERT_TRUE(a.share.push(records_of(10, 12)).is_ok());
  EXPECT_EQ(b.pull()->fetched, 1u);
  const int gets = b.blobs.gets;
  EXPECT_EQ(b.share.push(records_of(0, 12))->known, 12u);
  EXPECT_EQ(b.blobs.gets, gets + 1) << "the index alone";
  // What was lost here comes back.
  b.have.clear();
  EXPECT_EQ(b.pull()->fetched, 2u);
  EXPECT_EQ(b.have.size(), 12u);
}

// What a pusher remembers of a segment says nothing of whether it is still there.
TEST(Share, ARememberedSegmentThatIsGoneOrCutIsPushedAgain) {
  for (const bool gone : {true, false}) {
    blobs::Memory memory;
    TemporaryDirectory memo;
    Machine a(memory, {.memo_directory = memo.file("share")}), b(memory);
    ASSERT_TRUE(a.share.push(records_of(0, 10)).is_ok());
    const std::string key = index_of(memory).segments[0].key();
    if (gone)
      memory.objects.erase(key);
    else
      memory.objects.at(key).bytes.resize(100);
    const PushReport again = a.share.push(records_of(0, 10)).value();
    EXPECT_EQ(again.pushed, 10u) << gone;
    EXPECT_EQ(again.problems.size(), 1u) << gone;
    EXPECT_EQ(b.pull()->records, 10u) << gone;
  }
}

// Between reading the index and writing it, others push: no records are lost.
TEST(Share, AFasterPusherLosesNobody) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  ASSERT_TRUE(b.share.push(records_of(0, 1)).is_ok());
  int others = 0;
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    if (operation == "put" && key == "index.json" && others < 3) {
      ++others;
      EXPECT_TRUE(b.share.push(records_of(10 * others, 10 * others + 2)).is_ok());
    }
    return Status::ok();
  };
  const PushReport report = a.share.push(records_of(100, 103)).value();
  EXPECT_EQ(report.conflicts, 3);
  EXPECT_EQ(report.pushed, 3u);
  ASSERT_TRUE(b.pull().is_ok());
  EXPECT_EQ(b.have.size(), 1u + 3 * 2 + 3);
}

TEST(Share, ALostAnswerIsNotWrittenTwice) {
  blobs::Memory memory;
  Machine a(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 1)).is_ok());
  // The put arrives, the answer does not, and the retry inside the store gets a conflict.
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    if (operation != "put" || key != "index.json") return Status::ok();
    a.blobs.before = nullptr;
    ShareIndex index = index_of(memory);
    for (const auto& [name, blob] : memory.objects)
      if (name.rfind("segments/", 0) == 0 && index.find(name.substr(9, 64)) == nullptr)
        index.segments.push_back({name.substr(9, 64), blob.bytes.size(), 2});
    ++index.generation;
    blobs::MemoryBlobs direct(memory);
    EXPECT_EQ(direct.put_if_match(key, encode_index(index), memory.objects.at(key).tag).value(),
              blobs::Put::kStored);
    return Status::ok();
  };
  const PushReport report = a.share.push(records_of(1, 3)).value();
  EXPECT_EQ(report.conflicts, 1);
  EXPECT_EQ(index_of(memory).segments.size(), 2u);
  EXPECT_EQ(index_of(memory).generation, 2u);
}

TEST(Share, GivesUpWhenOthersNeverStop) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  ASSERT_TRUE(b.share.push(records_of(0, 1)).is_ok());
  int n = 0;
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    if (operation == "put" && key == "index.json") {
      blobs::MemoryBlobs direct(memory);
      const blobs::Blob blob = memory.objects.at(key);
      EXPECT_TRUE(direct.put_if_match(key, blob.bytes, blob.tag).is_ok());
      ++n;
    }
    return Status::ok();
  };
  const Status status = a.share.push(records_of(5, 6)).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(n, 100);
}

TEST(Share, AServiceWithoutConditionsIsRefused) {
  blobs::Memory memory;
  Machine a(memory);
  a.blobs.ignores_conditions = true;
  const Status status = a.share.push(records_of(0, 1)).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("ignores conditional writes"), std::string::npos);
  EXPECT_EQ(memory.objects.count("index.json"), 0u);
}

TEST(Share, ADamagedSegmentIsNamedAndTheRestIsUsed) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 3)).is_ok());
  ASSERT_TRUE(a.share.push(records_of(3, 5)).is_ok());
  const std::string damaged = index_of(memory).segments[0].key();
  memory.objects[damaged].bytes[500] ^= 1;
  const PullReport report = b.pull().value();
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].find(damaged), 0u) << report.problems[0];
  EXPECT_EQ(b.have, ids_of(records_of(3, 5)));
  // A machine that has the records brings them back.
  EXPECT_EQ(a.share.push(records_of(0, 5))->pushed, 3u);
  EXPECT_EQ(b.pull()->problems.size(), 1u);
  EXPECT_EQ(b.have, ids_of(records_of(0, 5)));
  const CompactReport kept = a.share.compact({}).value();
  EXPECT_EQ(kept.dropped, 0u);
  const CompactReport dropped = a.share.compact({.drop_unreadable = true}).value();
  EXPECT_EQ(dropped.dropped, 1u);
  EXPECT_TRUE(b.pull()->problems.empty());
  EXPECT_EQ(b.have, ids_of(records_of(0, 5)));
}

TEST(Share, AMissingOrNewerSegmentIsNamed) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 3)).is_ok());
  ASSERT_TRUE(a.share.push(records_of(3, 5)).is_ok());
  memory.objects.erase(index_of(memory).segments[0].key());
  const PullReport report = b.pull().value();
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].find("does not exist"), std::string::npos);
  EXPECT_EQ(b.have.size(), 2u);
}

TEST(Share, ADamagedOrNewerIndexIsRefusedAndLeftAlone) {
  blobs::Memory memory;
  Machine a(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 1)).is_ok());
  std::string newer = memory.objects["index.json"].bytes;
  newer.replace(newer.find("share/1"), 7, "share/2");
  for (const std::string& bytes : {std::string("{"), newer}) {
    memory.objects["index.json"].bytes = bytes;
    EXPECT_EQ(a.share.push(records_of(0, 2)).status().code(), Code::kCorrupt);
    EXPECT_EQ(a.pull().status().code(), Code::kCorrupt);
    EXPECT_EQ(a.share.compact({}).status().code(), Code::kCorrupt);
    EXPECT_EQ(memory.objects["index.json"].bytes, bytes);
  }
}

// What the error says to do about a damaged index.
TEST(Share, APushWithoutAnIndexListsTheSegmentsThatAreThere) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 10)).is_ok());
  memory.objects["index.json"].bytes = "{";
  EXPECT_NE(a.share.push(records_of(10, 12)).status().message().find("remove"), std::string::npos);
  memory.objects.erase("index.json");
  memory.objects["segments/" + std::string(64, '0') + ".bundle"] = {"no bundle", "tag"};
  const Result<PushReport> pushed = a.share.push(records_of(8, 12));
  ASSERT_TRUE(pushed.is_ok()) << pushed.status().message();
  EXPECT_EQ(pushed->known, 2u);
  EXPECT_EQ(pushed->problems.size(), 1u);
  EXPECT_TRUE(b.pull().is_ok());
  EXPECT_EQ(b.have, ids_of(records_of(0, 12)));
}

TEST(Share, SegmentsOfAnotherKeyAreNotTaken) {
  blobs::Memory memory;
  const SigningKey ours = SigningKey::from_secret("0123456789abcdef").value();
  const SigningKey theirs = SigningKey::from_secret("fedcba9876543210").value();
  Machine a(memory, {.key = &ours}), b(memory, {.key = &theirs}), c(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 3)).is_ok());
  EXPECT_EQ(b.pull()->problems.size(), 1u);
  EXPECT_TRUE(b.have.empty());
  EXPECT_EQ(c.pull()->records, 3u) << "without a key signatures are not asked for";
  ASSERT_TRUE(a.share.push(records_of(3, 4)).is_ok());
  EXPECT_EQ(c.share.compact({})->merged, 0u) << "it could not sign what it merged";
  EXPECT_EQ(b.share.compact({.drop_unreadable = true})->dropped, 0u);
  EXPECT_EQ(a.share.compact({})->merged, 2u);
  EXPECT_EQ(a.pull()->records, 4u);
}

TEST(Share, CompactionMergesAndRemovesAfterTheGraceTime) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a.share.push(records_of(2 * i, 2 * i + 2)).is_ok());
  const auto before = memory.objects.size();
  EXPECT_EQ(a.share.compact({.dry_run = true})->merged, 5u);
  EXPECT_EQ(memory.objects.size(), before);
  const CompactReport merged = a.share.compact({}).value();
  EXPECT_EQ(merged.merged, 5u);
  EXPECT_EQ(merged.after, 1u);
  EXPECT_EQ(merged.removed, 0u);
  EXPECT_EQ(b.pull()->records, 10u);
  EXPECT_EQ(b.have, ids_of(records_of(0, 10)));
  EXPECT_EQ(a.share.compact({})->merged, 0u) << "one segment is as few as it gets";
  // A push that was killed left this.
  blobs::MemoryBlobs direct(memory);
  ASSERT_TRUE(direct.put_if_absent(Segment{std::string(64, 'a')}.key(), "x").is_ok());
  a.clock.now_ns += 25 * 3600 * std::int64_t{1'000'000'000};
  const CompactReport removed = a.share.compact({}).value();
  EXPECT_EQ(removed.removed, 6u);
  EXPECT_EQ(memory.objects.size(), 2u);
  EXPECT_TRUE(index_of(memory).retired.empty());
  Machine c(memory);
  EXPECT_EQ(c.pull()->records, 10u);
}

// A reader holds an index from before the compaction, and its segments go away under it.
TEST(Share, AReaderWithAnOldIndexReadsItAgain) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 2)).is_ok());
  ASSERT_TRUE(a.share.push(records_of(2, 4)).is_ok());
  b.blobs.before = [&](const std::string& operation, const std::string& key) {
    if (operation == "get" && key != "index.json") {
      b.blobs.before = nullptr;
      EXPECT_EQ(a.share.compact({.grace_s = 0})->removed, 2u);
    }
    return Status::ok();
  };
  const PullReport report = b.pull().value();
  EXPECT_TRUE(report.problems.empty());
  EXPECT_EQ(b.have, ids_of(records_of(0, 4)));
}

std::size_t stored_bytes(const blobs::Memory& memory) {
  std::size_t bytes = 0;
  for (const auto& [key, blob] : memory.objects) bytes += blob.bytes.size();
  return bytes;
}
void a_day_later(Machine& machine) {
  machine.clock.now_ns += 25 * 3600 * std::int64_t{1'000'000'000};
}
// Two segments that are listed, three that were merged a day ago, one that no index ever listed.
void untidy(Machine& machine, blobs::Memory& memory) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(machine.share.push(records_of(i, i + 1)).is_ok());
  ASSERT_TRUE(machine.share.compact({}).is_ok());
  a_day_later(machine);
  ASSERT_TRUE(machine.share.push(records_of(3, 4)).is_ok());
  blobs::MemoryBlobs direct(memory);
  ASSERT_TRUE(direct.put_if_absent(Segment{std::string(64, 'a')}.key(), "left over").is_ok());
}

// Only the index can still be written: removing unneeded objects makes room for merged ones.
TEST(Share, CompactionAtAFullQuotaMakesItsOwnRoom) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  untidy(a, memory);
  const std::size_t quota = stored_bytes(memory);
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    return operation == "put" && key != "index.json" && stored_bytes(memory) >= quota
               ? error(Code::kInvalid, "HTTP 507: the quota is used up")
               : Status::ok();
  };
  ASSERT_FALSE(a.share.push(records_of(8, 9)).is_ok());
  const Result<CompactReport> report = a.share.compact({});
  ASSERT_TRUE(report.is_ok()) << report.status().message();
  EXPECT_TRUE(report->failure.is_ok());
  EXPECT_EQ(report->removed, 4u);
  EXPECT_EQ(report->merged, 2u);
  EXPECT_EQ(report->after, 1u);
  EXPECT_TRUE(a.share.push(records_of(8, 9)).is_ok());
  ASSERT_TRUE(b.pull().is_ok());
  EXPECT_EQ(b.have.size(), 5u);
}

TEST(Share, WhatACompactionRemovedIsReportedWhenItCannotMerge) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  untidy(a, memory);
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    return operation == "put" && key != "index.json"
               ? error(Code::kInvalid, "HTTP 507: the quota is used up")
               : Status::ok();
  };
  const CompactReport report = a.share.compact({}).value();
  EXPECT_EQ(report.removed, 4u);
  EXPECT_GT(report.removed_bytes, 0u);
  EXPECT_EQ(report.merged, 0u);
  EXPECT_EQ(report.before, 2u);
  EXPECT_EQ(report.after, 2u);
  EXPECT_EQ(report.failure.code(), Code::kInvalid);
  EXPECT_NE(report.failure.message().find("the quota is used up"), std::string::npos);
  EXPECT_EQ(a.share.compact({}).status().code(), Code::kInvalid) << "it did nothing at all";
  ASSERT_TRUE(b.pull().is_ok());
  EXPECT_EQ(b.have, ids_of(records_of(0, 4)));
}

// Killed before any one of its requests, and each time another time: nothing that is listed is
// gone.
TEST(Share, ACompactionThatDiesAnywhereLosesNothing) {
  for (int dies_after = 0;; ++dies_after) {
    blobs::Memory memory;
    Machine a(memory), b(memory), later(memory);
    untidy(a, memory);
    int requests = 0;
    a.blobs.before = [&](const std::string&, const std::string&) {
      return requests++ < dies_after ? Status::ok() : error(Code::kIo, "it is dead");
    };
    static_cast<void>(a.share.compact({.grace_s = 3600}).is_ok());
    const PullReport pulled = b.pull().value();
    EXPECT_TRUE(pulled.problems.empty()) << dies_after;
    EXPECT_EQ(b.have, ids_of(records_of(0, 4))) << dies_after;
    a_day_later(later);
    a_day_later(later);
    a_day_later(later);
    ASSERT_TRUE(later.share.compact({}).is_ok());
    a_day_later(later);
    ASSERT_TRUE(later.share.compact({}).is_ok());
    EXPECT_EQ(memory.objects.size(), 2u) << dies_after;
    EXPECT_TRUE(index_of(memory).retired.empty());
    b.have.clear();
    EXPECT_EQ(b.pull()->records, 4u) << dies_after;
    if (requests < dies_after) break;
    ASSERT_LT(dies_after, 100);
  }
}

// A service that does not say when an object was written: it may be this moment's.
TEST(Share, WhatHasNoTimeIsNotRemoved) {
  blobs::Memory memory;
  Machine a(memory);
  untidy(a, memory);
  for (auto& [key, time] : memory.modified_ns) time = 0;
  EXPECT_EQ(a.share.compact({})->removed, 0u);
}

// More records than one segment holds, and the disk is full after the first; or the answer to the
// second is lost. Nothing that was written stays in the way.
TEST(Share, APushThatFailsTakesBackWhatItWrote) {
  for (const bool lost : {false, true}) {
    blobs::Memory memory;
    Machine a(memory, {.limits = {.segment_records = 16}}), b(memory);
    ASSERT_TRUE(a.share.push(records_of(0, 1)).is_ok());
    int segments = 0;
    a.blobs.before = [&](const std::string& operation, const std::string& key) {
      if (operation != "put" || key == "index.json" || ++segments < 2) return Status::ok();
      a.blobs.lost_answers = lost ? 1 : 0;
      return lost ? Status::ok() : error(Code::kIo, "the disk is full");
    };
    const Status status = a.share.push(records_of(1, 20)).status();
    EXPECT_EQ(status.code(), lost ? Code::kUnavailable : Code::kIo) << status.message();
    EXPECT_EQ(segments, 2);
    EXPECT_EQ(memory.objects.size(), 2u) << "an index and the segment that it lists";
    ASSERT_TRUE(b.pull().is_ok());
    EXPECT_EQ(b.have.size(), 1u);
  }
}

// From now on the machine's second segment finds the disk full, once `meanwhile` is over.
void fill_before_second_segment(Machine& machine, const std::function<void()>& meanwhile) {
  machine.blobs.before = [meanwhile, segments = 0](const std::string& operation,
                                                   const std::string& key) mutable {
    if (operation != "put" || key == "index.json" || ++segments < 2) return Status::ok();
    EXPECT_EQ(segments, 2) << "it goes on where the disk is full";
    meanwhile();
    return error(Code::kIo, "the disk is full");
  };
}

// Who finds no index lists all that is there, what a push under way has written too; and relies on
// it. Whether the index was never made or was removed meanwhile.
TEST(Share, APushThatFailsTakesNothingBackThatAnotherLists) {
  for (const bool removed : {false, true}) {
    blobs::Memory memory;
    Machine a(memory, {.limits = {.segment_records = 16}}), b(memory), c(memory);
    if (removed) {
      ASSERT_TRUE(a.share.push(records_of(5000, 5001)).is_ok());
    }
    fill_before_second_segment(a, [&] {
      memory.objects.erase("index.json");
      EXPECT_EQ(b.share.push(records_of(0, 10))->known, 10u);
    });
    EXPECT_EQ(a.share.push(records_of(0, 20)).status().code(), Code::kIo);
    const PullReport pulled = c.pull().value();
    EXPECT_TRUE(pulled.problems.empty()) << pulled.problems[0];
    EXPECT_EQ(c.have.size(), removed ? 17u : 16u) << "what B was told is there";
  }
}

// Nor while there is none: the next push lists it.
TEST(Share, APushThatFailsWithoutAnIndexLeavesWhatItWrote) {
  for (const bool removed : {false, true}) {
    blobs::Memory memory;
    Machine a(memory, {.limits = {.segment_records = 16}}), b(memory);
    if (removed) {
      ASSERT_TRUE(a.share.push(records_of(5000, 5001)).is_ok());
    }
    fill_before_second_segment(a, [&] { memory.objects.erase("index.json"); });
    EXPECT_EQ(a.share.push(records_of(0, 20)).status().code(), Code::kIo);
    EXPECT_EQ(memory.objects.size(), removed ? 2u : 1u);
    const PushReport again = b.share.push(records_of(0, 20)).value();
    EXPECT_EQ(again.known, 16u);
    EXPECT_EQ(again.pushed, 4u);
  }
}

// What could not be read again is not written.
TEST(Share, AnIndexOfTooManySegmentsIsRefusedWhenItIsWritten) {
  blobs::Memory memory;
  Machine a(memory, {.limits = {.segments = 2}});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(a.share.push(records_of(i, i + 1)).is_ok());
  const Status status = a.share.push(records_of(2, 3)).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("purlin cache gc --share"), std::string::npos);
  EXPECT_EQ(index_of(memory).segments.size(), 2u);
}

TEST(Share, TidyingLeavesTheIndexRoomForWhatWaits) {
  blobs::Memory memory;
  Machine a(memory, {.limits = {.retired = 2}});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(a.share.push(records_of(i, i + 1)).is_ok());
  EXPECT_EQ(a.share.compact({})->merged, 2u);
  EXPECT_EQ(index_of(memory).retired.size(), 2u);
  EXPECT_EQ(a.share.compact({})->merged, 0u);
  a.clock.now_ns += 25 * std::int64_t{3'600'000'000'000};
  EXPECT_EQ(a.share.compact({})->merged, 2u);
  EXPECT_EQ(index_of(memory).segments.size(), 2u);
}

TEST(ShareIndex, TheLargestFitsIntoItsBytes) {
  const auto bytes_of = [](std::size_t segments, std::size_t retired) {
    ShareIndex index;
    for (std::size_t i = 0; i < segments; ++i)
      index.segments.push_back({std::string(64, 'a'), 64 << 20, 4096});
    for (std::size_t i = 0; i < retired; ++i)
      index.retired.push_back({std::string(64, 'a'), "2026-11-20T00:00:00Z"});
    return encode_index(index).size();
  };
  const std::size_t one = bytes_of(1, 1);
  EXPECT_LT(one + kMaxIndexSegments * (bytes_of(2, 1) - one) + kMaxRetired * (bytes_of(1, 2) - one),
            kMaxIndexBytes);
}

// Two tidy at once: what the slower one has merged is merged already.
TEST(Share, ASlowerTidierSaysThatItMergedNothing) {
  blobs::Memory memory;
  Machine a(memory), b(memory), c(memory);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a.share.push(records_of(i, i + 1)).is_ok());
  bool once = true;
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    if (operation == "put" && key == "index.json" && std::exchange(once, false)) {
      EXPECT_EQ(b.share.compact({})->merged, 3u);
    }
    return Status::ok();
  };
  EXPECT_EQ(a.share.compact({})->merged, 0u);
  ASSERT_TRUE(c.pull().is_ok());
  EXPECT_EQ(c.have.size(), 3u);
}

TEST(Share, APushThatCannotTakeBackSaysWhyItFailed) {
  blobs::Memory memory;
  Machine a(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 1)).is_ok());
  int removals = 0;
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    if (operation == "remove") ++removals;
    return operation == "get" || operation == "list" || (operation == "put" && removals > 0)
               ? Status::ok()
               : error(Code::kUnavailable, "{} {} is not answered", operation, key);
  };
  const Status status = a.share.push(records_of(1, 3)).status();
  EXPECT_EQ(status.message().find("put segments/"), 0u) << status.message();
  EXPECT_EQ(removals, 1);
}

// Whether the index was stored is not known, so its segments stay.
TEST(Share, APushTakesNothingBackThatTheIndexMayList) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  ASSERT_TRUE(a.share.push(records_of(0, 1)).is_ok());
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    if (operation == "put" && key == "index.json") a.blobs.lost_answers = 1;
    return Status::ok();
  };
  EXPECT_EQ(a.share.push(records_of(1, 3)).status().code(), Code::kUnavailable);
  EXPECT_TRUE(b.pull()->problems.empty());
  EXPECT_EQ(b.have, ids_of(records_of(0, 3)));
}

TEST(Share, TwoCompactionsAtOnceLoseNothing) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(a.share.push(records_of(i, i + 1)).is_ok());
  a.blobs.before = [&](const std::string& operation, const std::string& key) {
    if (operation == "put" && key == "index.json") {
      a.blobs.before = nullptr;
      EXPECT_EQ(b.share.compact({})->after, 1u);
      EXPECT_TRUE(b.share.push(records_of(4, 5)).is_ok());
    }
    return Status::ok();
  };
  EXPECT_EQ(a.share.compact({})->after, 2u);
  ASSERT_TRUE(b.pull().is_ok());
  EXPECT_EQ(b.have, ids_of(records_of(0, 5)));
}

TEST(Share, ManyRecordsAreSeveralSegments) {
  blobs::Memory memory;
  Machine a(memory), b(memory);
  EXPECT_EQ(a.share.push(records_of(0, 4100))->segments, 2u);
  EXPECT_EQ(b.pull()->records, 4100u);
}

TEST(ShareIndex, IsReadBackAndChecked) {
  ShareIndex index;
  index.generation = 7;
  index.segments = {{std::string(64, 'a'), 10, 2}, {std::string(64, 'b'), 20, 3}};
  index.retired = {{std::string(64, 'c'), "2026-11-20T00:00:00Z"}};
  const ShareIndex copy = decode_index(encode_index(index)).value();
  EXPECT_EQ(copy.generation, 7u);
  EXPECT_EQ(copy.segments, index.segments);
  EXPECT_EQ(copy.retired, index.retired);
  for (const char* bad :
       {"", "[]", "{}", R"({"schema": "purlin.share/1"})",
        R"({"schema": "purlin.share/1", "generation": -1, "segments": []})",
        R"({"schema": "purlin.share/1", "generation": 1, "segments": [{"name": "../x"}]})"})
    EXPECT_FALSE(decode_index(bad).is_ok()) << bad;
}

}  // namespace
}  // namespace purlin::cache
