// SPDX-License-Identifier: Apache-2.0
#include "profile/format/stream.h"

#include "base/files.h"
#include "base/random.h"
#include "profile/format/events.h"
#include "profile/format/file.h"
#include "profile/format/profiles_for_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

namespace purlin::profile {
namespace {

// Rows with names only, and launches of two devices, sorted.
Profile launches_only(std::size_t launches) {
  Profile profile;
  profile.environment.devices.resize(2);
  profile.processes.resize(1);
  for (int i = 0; i < 50; ++i) {
    KernelRow& row = profile.kernels.emplace_back();
    row.name = "kernel" + std::to_string(i);
    row.device = i % 2;
  }
  Random rng(1);
  for (std::size_t i = 0; i < launches; ++i) {
    Activity activity;
    activity.row = static_cast<std::uint32_t>(rng.below(49));  // the last one never ran
    activity.device = static_cast<std::uint16_t>(activity.row % 2);
    activity.start_ns = 1'000'000 + static_cast<std::int64_t>(1000 * i);
    activity.duration_ns = static_cast<std::int64_t>(rng.below(900'000));
    profile.timeline.activities.push_back(activity);
  }
  sort_timeline(profile.timeline);
  return profile;
}

TEST(ProfileStream, LaunchesAreFoldedTheSameByAnyNumberOfWorkers) {
  const Profile before = launches_only(300'000);
  std::vector<Sketch> expected(before.kernels.size());
  for (const Activity& activity : before.timeline.activities)
    expected[activity.row].add(static_cast<double>(activity.duration_ns));
  const std::string bytes = encode_profile(before);
  for (const std::size_t workers : {1u, 2u, 5u}) {
    const Result<Profile> after =
        decode_profile(bytes, {.max_timeline_events = 0, .workers = workers});
    ASSERT_TRUE(after.is_ok()) << after.status().message();
    EXPECT_TRUE(after->timeline.empty());
    EXPECT_EQ(after->timeline.left_out, 300'000u);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const Sketch& sketch = after->kernels[i].duration;
      EXPECT_EQ(sketch.buckets(), expected[i].buckets()) << i;
      EXPECT_EQ(sketch.first_bucket(), expected[i].first_bucket()) << i;
      EXPECT_EQ(sketch.total_ns(), expected[i].total_ns()) << i;
      EXPECT_EQ(sketch.min_ns(), expected[i].min_ns()) << i;
      EXPECT_EQ(sketch.max_ns(), expected[i].max_ns()) << i;
    }
    EXPECT_TRUE(after->kernels[49].duration.empty());
    EXPECT_EQ(after->coverage.launches_seen, 300'000);
    EXPECT_LE(after->kernels[0].first_ns, 1'500'000);
    EXPECT_GE(after->kernels[0].last_ns, 300'000'000);
  }
}

// A row's own sketch may represent launches that the timeline does not hold.
TEST(ProfileStream, ASketchIsNotReplaced) {
  Profile profile = launches_only(1000);
  profile.kernels[3].duration.add(5, 77);
  const Result<Profile> after = decode_profile(encode_profile(profile));
  ASSERT_TRUE(after.is_ok());
  EXPECT_EQ(after->kernels[3].duration.count(), 77);
  EXPECT_GT(after->kernels[4].duration.count(), 0);
}

TEST(ProfileStream, ABoundedTimelineIsTheBeginningOfTheRecording) {
  const Profile before = launches_only(400'000);
  const std::string bytes = encode_profile(before);
  const Result<Profile> after = decode_profile(bytes, {.max_timeline_events = 150'000});
  ASSERT_TRUE(after.is_ok()) << after.status().message();
  const Timeline& timeline = after->timeline;
  EXPECT_LE(timeline.activities.size(), 150'000u);
  EXPECT_GE(timeline.activities.size(), 20'000u);
  EXPECT_EQ(timeline.activities.size() + timeline.left_out, 400'000u);
  EXPECT_EQ(timeline.begin_ns, 1'000'000);
  // Of both devices everything up to the end is there.
  const auto kept =
      std::count_if(before.timeline.activities.begin(), before.timeline.activities.end(),
                    [&](const Activity& activity) { return activity.start_ns < timeline.end_ns; });
  EXPECT_EQ(timeline.activities.size(), static_cast<std::size_t>(kept));
  // Written and read again it is what it was.
  EXPECT_EQ(encode_profile(*decode_profile(encode_profile(*after))), encode_profile(*after));
}

TEST(ProfileStream, LinksFromABoundedTimelineLeadToWhatIsThere) {
  const Profile before =
      test_profile({.seed = 5, .activities = 200'000, .calls = 200'000, .ops = 100'000});
  const std::string bytes = encode_profile(before);
  for (const std::size_t bound : {1'000u, 70'000u, 200'000u, 300'000u, 490'000u}) {
    const Result<Profile> after = decode_profile(bytes, {.max_timeline_events = bound});
    ASSERT_TRUE(after.is_ok()) << after.status().message();
    const Timeline& timeline = after->timeline;
    EXPECT_LE(timeline.activities.size() + timeline.calls.size() + timeline.ops.size(), bound);
    EXPECT_EQ(timeline.activities.size() + timeline.left_out, 200'000u + before.timeline.left_out);
    for (std::size_t i = 0; i < timeline.calls.size(); ++i)
      ASSERT_EQ(timeline.calls[i].start_ns, before.timeline.calls[i].start_ns);
    for (const Activity& activity : timeline.activities)
      ASSERT_TRUE(activity.call == kNone || activity.call < timeline.calls.size());
    for (const Call& call : timeline.calls)
      ASSERT_TRUE(call.op == kNone || call.op < timeline.ops.size());
    for (const Op& op : timeline.ops)
      ASSERT_TRUE(op.parent == kNone || op.parent < timeline.ops.size());
  }
}

TEST(ProfileStream, AFileIsReadInPiecesAsItsBytesAre) {
  const Result<std::string> folder = make_temporary_directory("purlin-stream-test");
  ASSERT_TRUE(folder.is_ok());
  const std::string path = join_path(*folder, "a.plprof");
  // One chunk that is larger than what is read at once.
  std::string bytes;
  wire::append_header(bytes);
  wire::append_chunk(bytes, wire::ChunkType::kMeta, R"({"schema":"purlin.profile/1"})");
  wire::Encoder strings, kernels;
  strings.varint(1);
  strings.text("add");
  wire::append_chunk(bytes, wire::ChunkType::kStrings, strings.bytes());
  kernels.varint(1);
  wire::encode(kernels, wire::KernelDefinition{});
  wire::append_chunk(bytes, wire::ChunkType::kKernels, kernels.bytes());
  wire::LaunchEncoder launches;
  for (int i = 0; i < 500'000; ++i) launches.add(0, 0, 10 * i, i % 1000);
  wire::append_chunk(bytes, wire::ChunkType::kLaunches, launches.finish(0));
  wire::append_chunk(bytes, wire::ChunkType::kSeal,
                     wire::encode(wire::Seal{1, 0, bytes.size(), true}));
  ASSERT_TRUE(write_atomic(path, bytes).is_ok());

  const Result<Profile> read = read_profile(path);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(encode_profile(*read), encode_profile(*decode_profile(bytes)));
  EXPECT_EQ(read->kernels[0].duration.count(), 500'000);

  Result<ProfileStream> stream = ProfileStream::open(path);
  ASSERT_TRUE(stream.is_ok());
  EXPECT_EQ(stream->activities(), 500'000u);
  std::mutex mutex;
  std::int64_t total = 0;
  const Status all = stream->visit(2, [&](std::size_t, std::span<const Activity> batch) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const Activity& activity : batch) total += activity.duration_ns;
    return true;
  });
  EXPECT_TRUE(all.is_ok());
  EXPECT_EQ(total, 500 * (999 * 1000 / 2));
  std::size_t calls = 0;
  EXPECT_TRUE(stream->visit(1, [&](std::size_t, auto) { return ++calls, false; }).is_ok());
  EXPECT_EQ(calls, 1u);

  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_TRUE(write_atomic(path, bytes).is_ok());
  EXPECT_EQ(read_profile(path).status().code(), Code::kCorrupt);  // its only seal is behind
  EXPECT_EQ(read_profile(*folder).status().code(), Code::kIo);
  EXPECT_EQ(read_profile(path + "x").status().code(), Code::kNotFound);
  ASSERT_TRUE(remove_tree(*folder).is_ok());
}

// A few bytes that name the millionth process must not make a million of them.
TEST(ProfileStream, ProcessesThatNobodyDescribedAreFew) {
  Profile profile = launches_only(1);
  for (const std::uint32_t process : {7u, 1'000'000u}) {
    profile.timeline.activities[0].process = process;
    const Result<Profile> read = decode_profile(encode_profile(profile));
    EXPECT_EQ(read.is_ok(), process == 7) << process;
    EXPECT_EQ(read.is_ok() ? read->processes.size() : 8u, 8u);
  }
}

// Chunks whose checksum is right and whose events are not.
TEST(ProfileStream, HostileEventsAreRefusedByOffset) {
  const auto with = [](wire::ChunkType type, const wire::Encoder& payload) {
    std::string out;
    wire::append_header(out);
    wire::append_chunk(out, wire::ChunkType::kMeta, R"({"schema":"purlin.profile/1"})");
    wire::append_chunk(out, type, payload.bytes());
    wire::append_chunk(out, wire::ChunkType::kSeal,
                       wire::encode(wire::Seal{1, 0, out.size(), true}));
    return decode_profile(out).status();
  };
  using wire::ChunkType;
  const auto types = {ChunkType::kActivities, ChunkType::kCalls, ChunkType::kOps,
                      ChunkType::kRanges};
  wire::Encoder huge;  // more events than bytes
  huge.fixed64(0);
  huge.varint(std::uint64_t{1} << 40);
  wire::Encoder unknown;  // an identity that is not the next
  unknown.fixed64(0);
  unknown.varint(1);
  for (int i = 0; i < 12; ++i) unknown.varint(5);
  wire::Encoder nowhere;  // a row, name or kind that is not there
  nowhere.fixed64(0);
  nowhere.varint(1);
  for (const int number : {0, 0, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0}) nowhere.varint(number);
  for (const ChunkType type : types) {
    EXPECT_EQ(with(type, huge).code(), Code::kCorrupt);
    EXPECT_EQ(with(type, unknown).code(), Code::kCorrupt);
    EXPECT_EQ(with(type, nowhere).code(), Code::kCorrupt);
    EXPECT_NE(with(type, unknown).message().find("at offset 61"), std::string::npos)
        << with(type, unknown).message();
  }
}

}  // namespace
}  // namespace purlin::profile
