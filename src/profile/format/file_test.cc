// SPDX-License-Identifier: Apache-2.0
#include "profile/format/file.h"

#include "base/files.h"
#include "base/random.h"
#include "profile/format/head.h"
#include "profile/format/profiles_for_test.h"
#include "profile/format/stall_sites.h"
#include "profile/format/wire.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

namespace purlin::profile {
namespace {

Activity launch(std::uint32_t row, std::uint32_t stream, std::int64_t start_ns,
                std::int64_t duration_ns) {
  Activity activity;
  activity.row = row;
  activity.stream = stream;
  activity.start_ns = start_ns;
  activity.duration_ns = duration_ns;
  return activity;
}

KernelRow row(const std::string& name, std::uint32_t grid, int device, int launches) {
  KernelRow result;
  result.name = name;
  result.launch.grid = {grid, 2, 1};
  result.launch.block = {256, 1, 1};
  result.launch.dynamic_shared_bytes = 49152;
  result.registers = 128;
  result.static_shared_bytes = 1024;
  result.local_bytes = 8;
  result.device = device;
  for (int i = 1; i <= launches; ++i) result.duration.add(1000.0 * i);
  result.first_ns = 1'700'000'000'000'000'000;
  result.last_ns = result.first_ns + 5'000'000;
  return result;
}

Profile sample() {
  Profile profile;
  profile.command = "python3 train.py --name \"a b\"";
  profile.wall_ns = 12'345'678'901;
  profile.exit_code = 3;
  for (const char* id : {"cuda:0", "cuda:1"}) {
    DeviceInfo device;
    device.id = id;
    device.backend = "cuda";
    device.name = "NVIDIA H200";
    device.uuid = std::string("GPU-") + id;
    profile.environment.devices.push_back(device);
  }
  profile.environment.build = "v1.2";
  ProcessInfo process;
  process.pid = 4242;
  process.parent = 1;
  process.command = "python3";
  process.layer = "cuda";
  process.start_ns = 1'700'000'000'000'000'000;
  process.end_ns = process.start_ns + 12'000'000'000;
  process.complete = true;
  process.exit_seals = 12;
  process.stands_for = 3;
  profile.processes.push_back(process);
  profile.kernels = {row("_Z4gemmPf", 128, 0, 40), row("softmax", 7, 1, 3)};
  profile.kernels[1].op = "aten::softmax";
  profile.kernels[1].shape = "M=4096,N=1024";
  profile.copies.push_back({"h2d", 1, 65536, {}});
  profile.copies[0].duration.add(2500, 0.5);
  profile.timeline.activities = {launch(0, 7, process.start_ns + 100, 1500),
                                 launch(0, 13, process.start_ns + 1900, 700),
                                 launch(1, 7, process.start_ns + 2100, 900)};
  profile.coverage.launches_seen = 43;
  profile.coverage.launches_counted = 44;
  profile.coverage.launches_lost = 1;
  profile.coverage.overhead_ns = 12345;
  profile.coverage.step_ns = 48e6;
  profile.coverage.sampling.presence = 0.027;
  profile.coverage.sampling.one_in = 4;
  profile.coverage.sampling.hidden_ns = 7;
  profile.coverage.sampling.unsure_ns = 8;
  profile.coverage.bytes_written = 999;
  profile.coverage.notes.push_back({"stood_aside", "another CUPTI client was active", 0, 1.5});
  return profile;
}

void expect_same(const Profile& a, const Profile& b) {
  EXPECT_EQ(encode_profile(a), encode_profile(b));
}

TEST(ProfileFile, ComesBackAsItWas) {
  const Profile before = sample();
  const Result<Profile> after = decode_profile(encode_profile(before));
  ASSERT_TRUE(after.is_ok()) << after.status().message();
  expect_same(before, *after);
  EXPECT_FALSE(after->partial);
  ASSERT_EQ(after->kernels.size(), 2u);
  EXPECT_EQ(after->kernels[1].shape, "M=4096,N=1024");
  EXPECT_EQ(after->kernels[0].launch, before.kernels[0].launch);
  EXPECT_EQ(after->kernels[0].duration.count(), 40);
  EXPECT_EQ(after->kernels[0].duration.quantile(0.5), before.kernels[0].duration.quantile(0.5));
  EXPECT_EQ(after->copies[0].duration.count(), 0.5);
  ASSERT_EQ(after->timeline.activities.size(), 3u);
  EXPECT_EQ(after->timeline.activities[1].stream, 13u);
  EXPECT_EQ(after->timeline.activities[2].start_ns, before.timeline.activities[2].start_ns);
  EXPECT_EQ(after->processes[0].exit_seals, 12);
  EXPECT_EQ(after->processes[0].stands_for, 3);
  EXPECT_EQ(after->coverage.sampling.presence, 0.027);
  EXPECT_EQ(after->coverage.sampling.one_in, 4);
  EXPECT_EQ(after->coverage.sampling.hidden_ns, 7);
  EXPECT_EQ(after->coverage.sampling.unsure_ns, 8);
  EXPECT_EQ(after->coverage.notes[0].seconds, 1.5);
  EXPECT_EQ(after->coverage.step_ns, 48e6);
}

TEST(ProfileFile, EverythingAProfileHoldsComesBack) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Profile before = test_profile({.seed = seed});
    const Result<Profile> after = decode_profile(encode_profile(before));
    ASSERT_TRUE(after.is_ok()) << after.status().message();
    ASSERT_EQ(contents(*after), contents(before)) << seed;
    EXPECT_EQ(after->timeline.names, before.timeline.names);
    EXPECT_EQ(encode_profile(*after), encode_profile(before));
  }
  const Profile none;
  EXPECT_EQ(contents(*decode_profile(encode_profile(none))), contents(none));
}

// Facts of a newer writer or without sense are left out, what is absent has its default.
TEST(ProfileFile, ADataFlowIsReadLeniently) {
  const auto read = [](const std::string& flow) {
    std::string bytes;
    wire::append_header(bytes);
    wire::append_chunk(bytes, wire::ChunkType::kMeta,
                       R"({"schema":"purlin.profile/1","data_flow":)" + flow + "}");
    wire::append_chunk(bytes, wire::ChunkType::kSeal,
                       wire::encode(wire::Seal{1, 1, bytes.size(), true}));
    const Result<Profile> profile = decode_profile(bytes);
    EXPECT_TRUE(profile.is_ok());
    return profile.is_ok() ? profile->data_flow : DataFlow();
  };
  EXPECT_FALSE(read("7").recorded());
  EXPECT_FALSE(read(R"({"steps": -3})").recorded());
  const DataFlow flow = read(
      R"({"steps": 3, "ops": 1e300, "facts": [1, {}, {"kind": "unread", "op": "a", "count": 2},)"
      R"({"kind": "new", "op": "a", "count": 2}, {"kind": "unread", "op": "a", "ordinal": 2,)"
      R"("count": 2}, {"kind": "partly_read", "op": "a", "count": 2, "read_share": 1.5}]})");
  EXPECT_EQ(flow.steps, 3u);
  ASSERT_EQ(flow.facts.size(), 1u);
  EXPECT_EQ(flow.facts[0].op, "a");
}

// Capture libraries write what each period added; a later period may repeat a site.
TEST(ProfileFile, StallSitesOfPeriodsAddUp) {
  std::string bytes;
  wire::append_header(bytes);
  wire::append_chunk(bytes, wire::ChunkType::kMeta,
                     R"({"schema":"purlin.profile/1","environment":{"build":"v7"}})");
  wire::Encoder strings;
  strings.varint(2);
  strings.text("gemm");
  strings.text("barrier");
  wire::append_chunk(bytes, wire::ChunkType::kStrings, strings.bytes());
  for (int period = 0; period < 3; ++period) {
    wire::StallEncoder encoder;
    encoder.begin({0, 1, 0, 0xabc});
    encoder.place({48, 0, 0}, 1);
    encoder.count(1, 5);
    wire::append_chunk(bytes, wire::ChunkType::kStallSites,
                       encoder.finish({1, 1000, 4096, 4096, 2, 3}));
  }
  wire::append_chunk(bytes, wire::ChunkType::kSeal,
                     wire::encode(wire::Seal{1, 1, bytes.size(), true}));
  const Result<Profile> read = decode_profile(bytes);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  const SampledStalls& stalls = read->stalls;
  ASSERT_EQ(stalls.functions.size(), 1u);
  EXPECT_EQ(stalls.functions[0].name, "gemm");
  EXPECT_EQ(stalls.functions[0].build, "v7");
  EXPECT_EQ(stalls.functions[0].device, 1);
  ASSERT_EQ(stalls.functions[0].sites.size(), 1u);
  EXPECT_EQ(stalls.functions[0].sites[0].offset, 48u);
  EXPECT_EQ(stalls.functions[0].sites[0].samples(), 15);
  EXPECT_EQ(stalls.windows, 3);
  EXPECT_EQ(stalls.dropped, 6);
  EXPECT_EQ(stalls.untold, 9);
  EXPECT_EQ(stalls.most_period, 4096u);
  EXPECT_EQ(read->environment.devices.size(), 2u);  // sampled before it was described
}

// Links to what was cut off are gone, all others are right.
TEST(ProfileFile, ATimelineCutAtAnySealIsConsistent) {
  Profile profile = test_profile({.seed = 3, .activities = 70'000, .calls = 70'000, .ops = 500});
  const std::string whole = encode_profile(profile);
  std::vector<std::size_t> seals;
  for (std::size_t at = wire::kHeaderBytes; at < whole.size();) {
    wire::Decoder header(std::string_view(whole).substr(at, 8));
    const auto type = static_cast<wire::ChunkType>(header.fixed16());
    header.fixed16();
    at += wire::kChunkHeaderBytes + header.fixed32();
    if (type == wire::ChunkType::kSeal) seals.push_back(at);
  }
  ASSERT_GE(seals.size(), 6u);
  for (const std::size_t end : seals) {
    const Result<Profile> cut = decode_profile(std::string_view(whole).substr(0, end));
    ASSERT_TRUE(cut.is_ok()) << end << ": " << cut.status().message();
    const Timeline& timeline = cut->timeline;
    EXPECT_EQ(cut->partial, end != whole.size());
    for (std::size_t i = 0; i < timeline.activities.size(); ++i) {
      const std::uint32_t call = profile.timeline.activities[i].call;
      EXPECT_EQ(timeline.activities[i].start_ns, profile.timeline.activities[i].start_ns);
      EXPECT_EQ(timeline.activities[i].call, call < timeline.calls.size() ? call : kNone);
    }
    for (std::size_t i = 0; i < timeline.calls.size(); ++i) {
      const std::uint32_t op = profile.timeline.calls[i].op;
      EXPECT_EQ(timeline.calls[i].op, op < timeline.ops.size() ? op : kNone);
    }
  }
}

// What a capture library leaves: periods, each ended by a seal.
std::string periods(std::vector<std::size_t>& ends) {
  std::string out;
  wire::append_header(out);
  wire::append_chunk(out, wire::ChunkType::kMeta,
                     R"({"schema":"purlin.profile/1","processes":[{"pid":7,"layer":"opencl"}]})");
  wire::Encoder strings, kernels;
  strings.varint(1);
  strings.text("add");
  wire::append_chunk(out, wire::ChunkType::kStrings, strings.bytes());
  kernels.varint(1);
  wire::encode(kernels, wire::KernelDefinition{});
  wire::append_chunk(out, wire::ChunkType::kKernels, kernels.bytes());
  for (std::uint64_t period = 1; period <= 3; ++period) {
    Sketch delta;
    delta.add(1000);
    delta.add(2000);
    wire::Encoder sketches;
    sketches.varint(1);
    sketches.varint(0);
    sketches.fixed64(period);
    sketches.fixed64(period + 1);
    wire::encode(sketches, delta);
    wire::append_chunk(out, wire::ChunkType::kSketches, sketches.bytes());
    wire::append_chunk(out, wire::ChunkType::kSeal,
                       wire::encode(wire::Seal{period, static_cast<std::int64_t>(period),
                                               out.size(), period == 3}));
    ends.push_back(out.size());
  }
  return out;
}

TEST(ProfileFile, CutAnywhereKeepsEverySealedPeriod) {
  std::vector<std::size_t> ends;
  const std::string whole = periods(ends);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const Result<Profile> read = decode_profile(std::string_view(whole).substr(0, size));
    if (size < ends[0]) {
      EXPECT_FALSE(read.is_ok()) << size;
      continue;
    }
    ASSERT_TRUE(read.is_ok()) << size << ": " << read.status().message();
    const double sealed = size >= ends[2] ? 3 : size >= ends[1] ? 2 : 1;
    EXPECT_EQ(read->kernels[0].duration.count(), 2 * sealed) << size;
    EXPECT_EQ(read->processes[0].exit_seals, static_cast<int>(sealed));
    EXPECT_EQ(read->partial, size != whole.size()) << size;
    EXPECT_EQ(read->processes[0].complete, size == whole.size()) << size;
  }
}

// A written profile is sealed after its rows and then with every stretch of its timeline.
TEST(ProfileFile, AWrittenFileThatIsCutKeepsWhatIsWhole) {
  Profile profile = sample();
  for (int i = 0; i < 3'000; ++i)
    profile.kernels.push_back(row("kernel" + std::to_string(i), 1, 0, 1));
  profile.timeline.activities.assign(150'000, profile.timeline.activities[0]);
  const std::string whole = encode_profile(profile);
  const auto read = [&](double share) {
    const auto size = static_cast<std::size_t>(share * static_cast<double>(whole.size()));
    return decode_profile(std::string_view(whole).substr(0, size));
  };
  EXPECT_FALSE(read(0.01).is_ok());
  std::size_t rows = 0, launches = 0;
  for (const double share : {0.2, 0.5, 0.999}) {
    const Result<Profile> cut = read(share);
    ASSERT_TRUE(cut.is_ok()) << share << ": " << cut.status().message();
    EXPECT_TRUE(cut->partial);
    EXPECT_EQ(cut->command, profile.command);
    EXPECT_EQ(cut->coverage.launches_seen, 43);
    EXPECT_EQ(cut->copies.size(), 1u);
    EXPECT_GE(cut->kernels.size(), rows);
    EXPECT_GE(cut->timeline.activities.size(), launches);
    rows = cut->kernels.size();
    launches = cut->timeline.activities.size();
  }
  EXPECT_EQ(rows, profile.kernels.size());
  EXPECT_EQ(launches, std::size_t{131'072});
  expect_same(profile, *decode_profile(whole));
}

TEST(ProfileFile, AFlippedBitNeverYieldsWrongNumbers) {
  std::vector<std::size_t> ends;
  const std::string whole = periods(ends);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const Result<Profile> read = decode_profile(damaged);
    if (at >= 10 && at < 16) continue;  // reserved bytes of the header
    if (!read.is_ok()) {
      EXPECT_LT(at, ends[0]) << at;
      continue;
    }
    EXPECT_TRUE(read->partial) << at;
    EXPECT_EQ(read->kernels[0].duration.count(), at < ends[1] ? 2 : 4) << at;
  }
}

TEST(ProfileFile, ForeignBytesAreNamedAsSuch) {
  EXPECT_EQ(decode_profile("").status().code(), Code::kInvalid);
  EXPECT_EQ(decode_profile("{\"traceEvents\": []}").status().code(), Code::kInvalid);
  std::string newer = encode_profile(sample());
  newer[8] = 9;
  EXPECT_EQ(decode_profile(newer).status().code(), Code::kCorrupt);
  EXPECT_NE(decode_profile(newer).status().message().find("version 9"), std::string::npos);
}

// What an older Purlin wrote: 3500 buckets with g = 1.005 / 0.995, without a scale.
TEST(ProfileFile, SketchesOfTheFirstVersionAreConverted) {
  const double g = 1.005 / 0.995;
  std::vector<double> samples;
  std::map<int, std::uint64_t> buckets;
  double total = 0;
  for (int i = 0; i < 2'000; ++i) {
    const double ns = 700.0 + 37.0 * i;
    samples.push_back(ns);
    total += ns;
    ++buckets[static_cast<int>(std::ceil(std::log(ns) / std::log(g)))];
  }
  std::string file;
  wire::append_header(file);
  wire::append_chunk(file, wire::ChunkType::kMeta,
                     R"({"schema":"purlin.profile/1","processes":[{"pid":7}]})");
  wire::Encoder strings, kernels, sketches;
  strings.varint(1);
  strings.text("add");
  wire::append_chunk(file, wire::ChunkType::kStrings, strings.bytes());
  kernels.varint(1);
  wire::encode(kernels, wire::KernelDefinition{});
  wire::append_chunk(file, wire::ChunkType::kKernels, kernels.bytes());
  sketches.varint(1);
  sketches.varint(0);
  sketches.fixed64(1);
  sketches.fixed64(2);
  sketches.varint(buckets.size() << 1 | 1);
  for (const double value : {total, samples.front(), samples.back()}) sketches.real(value);
  int previous = 0;
  for (const auto& [bucket, count] : buckets) {
    sketches.varint(static_cast<std::uint64_t>(bucket - previous));
    sketches.varint(count);
    previous = bucket;
  }
  wire::append_chunk(file, wire::ChunkType::kSketches, 1, sketches.bytes());
  wire::append_chunk(file, wire::ChunkType::kSeal,
                     wire::encode(wire::Seal{1, 1, file.size(), true}));

  const Result<Profile> read = decode_profile(file);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  const Sketch& sketch = read->kernels.at(0).duration;
  EXPECT_EQ(sketch.scale(), Sketch::kScale);
  EXPECT_EQ(sketch.count(), 2'000);
  EXPECT_EQ(sketch.total_ns(), total);
  EXPECT_EQ(sketch.min_ns(), samples.front());
  EXPECT_EQ(sketch.max_ns(), samples.back());
  for (const double q : {0.05, 0.5, 0.95, 0.999}) {
    const double truth = samples[static_cast<std::size_t>(std::ceil(q * 2'000)) - 1];
    EXPECT_NEAR(sketch.quantile(q), truth, truth * wire::kConvertedError) << q;
  }
  ASSERT_EQ(read->coverage.notes.size(), 1U);
  EXPECT_EQ(read->coverage.notes[0].cause, "converted_sketches");
}

// Chunks whose checksum is right and whose contents are not.
TEST(ProfileFile, HostileChunksAreRefused) {
  const auto with = [](wire::ChunkType type, const std::string& payload) {
    std::string out;
    wire::append_header(out);
    wire::append_chunk(out, wire::ChunkType::kMeta,
                       R"({"schema":"purlin.profile/1","processes":[{"pid":7}]})");
    wire::append_chunk(out, type, payload);
    wire::append_chunk(out, wire::ChunkType::kSeal,
                       wire::encode(wire::Seal{1, 0, out.size(), true}));
    return decode_profile(out).status().code();
  };
  wire::Encoder huge;
  huge.varint(std::uint64_t{1} << 62);
  using wire::ChunkType;
  for (const ChunkType type : {ChunkType::kStrings, ChunkType::kKernels, ChunkType::kSketches,
                               ChunkType::kCopies, ChunkType::kLaunches}) {
    EXPECT_EQ(with(type, huge.bytes()), Code::kCorrupt);
    EXPECT_EQ(with(type, "\xff"), Code::kCorrupt);
  }
  EXPECT_EQ(with(ChunkType::kCoverage, "{"), Code::kCorrupt);
  EXPECT_EQ(with(ChunkType::kMeta, "{}"), Code::kCorrupt);
  wire::Encoder dangling;  // a sketch of a kernel that is not defined
  dangling.varint(1);
  dangling.varint(5);
  dangling.fixed64(0);
  dangling.fixed64(0);
  Sketch sketch;
  sketch.add(1);
  wire::encode(dangling, sketch);
  EXPECT_EQ(with(ChunkType::kSketches, dangling.bytes()), Code::kCorrupt);
  wire::Encoder backwards;  // a launch that took less than no time
  backwards.varint(0);
  backwards.fixed64(0);
  backwards.varint(1);
  backwards.varint(0);
  backwards.signed_varint(0);
  backwards.signed_varint(-1);
  EXPECT_EQ(with(ChunkType::kLaunches, backwards.bytes()), Code::kCorrupt);
  EXPECT_EQ(with(static_cast<ChunkType>(77), "anything"), Code::kOk);
}

// Kernels whose durations vary by a few per cent, as those of a training step do.
TEST(ProfileFile, ALaunchTakesLessThanSevenBytes) {
  Random rng(1);
  wire::LaunchEncoder encoder;
  std::int64_t now = 1'700'000'000'000'000'000;
  constexpr std::size_t kLaunches = 10'000;
  for (std::size_t i = 0; i < kLaunches; ++i) {
    const auto kernel = static_cast<std::uint32_t>(rng.below(300));
    const std::int64_t usual = 2'000 + 200 * std::int64_t{kernel};
    const std::int64_t duration = usual + static_cast<std::int64_t>(rng.below(2'000));
    encoder.add(kernel, rng.below(10) == 0 ? 20 : 7, now, duration);
    now += duration + static_cast<std::int64_t>(rng.below(8'000));
  }
  EXPECT_LE(encoder.finish(0).size(), kLaunches * 7);
}

// A small file must not take much memory: many rows that share one long name.
TEST(ProfileFile, RowsThatShareALongNameAreBounded) {
  std::string out;
  wire::append_header(out);
  wire::append_chunk(out, wire::ChunkType::kMeta, R"({"schema":"purlin.profile/1"})");
  wire::Encoder strings, kernels;
  strings.varint(1);
  strings.text(std::string(4 << 20, 'k'));
  wire::append_chunk(out, wire::ChunkType::kStrings, strings.bytes());
  kernels.varint(1'000);
  for (int i = 0; i < 1'000; ++i) wire::encode(kernels, wire::KernelDefinition{});
  wire::append_chunk(out, wire::ChunkType::kKernels, kernels.bytes());
  wire::append_chunk(out, wire::ChunkType::kSeal, wire::encode(wire::Seal{1, 0, out.size(), true}));
  EXPECT_EQ(decode_profile(out).status().code(), Code::kCorrupt);
}

// Nor many rows with a launch of 1 ns in one chunk and one of a day in the next: together they span
// 3,200 buckets a row.
TEST(ProfileFile, SketchesFarApartAreBounded) {
  constexpr std::uint32_t kRows = 100;
  wire::Encoder strings, kernels;
  strings.varint(1);
  strings.text("k");
  kernels.varint(kRows);
  for (std::uint32_t i = 0; i < kRows; ++i) wire::encode(kernels, wire::KernelDefinition{});
  const auto sketches = [](double ns) {
    Sketch sketch;
    sketch.add(ns);
    wire::Encoder out;
    out.varint(kRows);
    for (std::uint32_t i = 0; i < kRows; ++i) {
      out.varint(i);
      out.fixed64(0);
      out.fixed64(0);
      wire::encode(out, sketch);
    }
    return out.bytes();
  };
  const auto decode = [&](std::size_t budget) {
    Profile profile;
    HeadReader reader(profile, budget);
    const auto chunk = [&](wire::ChunkType type, const std::string& payload) {
      return reader.decode(static_cast<std::uint16_t>(type), wire::version_of(type), payload);
    };
    EXPECT_TRUE(chunk(wire::ChunkType::kStrings, strings.bytes()));
    EXPECT_TRUE(chunk(wire::ChunkType::kKernels, kernels.bytes()));
    EXPECT_TRUE(chunk(wire::ChunkType::kSketches, sketches(1)));
    return chunk(wire::ChunkType::kSketches, sketches(86'400e9));
  };
  EXPECT_TRUE(decode(700'000));
  EXPECT_FALSE(decode(380'000));
}

TEST(ProfileMerge, AddsEqualRowsAndKeepsOthersApart) {
  Profile merged = sample();
  merge_into(merged, sample());
  ASSERT_EQ(merged.kernels.size(), 2u);
  EXPECT_EQ(merged.kernels[0].duration.count(), 80);
  EXPECT_EQ(merged.environment.devices.size(), 2u);
  EXPECT_EQ(merged.copies[0].bytes, 131072);
  EXPECT_EQ(merged.processes.size(), 2u);
  EXPECT_EQ(merged.timeline.activities.size(), 6u);
  EXPECT_EQ(merged.timeline.activities[5].process, 1u);
  EXPECT_EQ(merged.coverage.launches_seen, 86);
  ASSERT_EQ(merged.coverage.notes.size(), 1u);
  EXPECT_EQ(merged.coverage.notes[0].seconds, 3.0);

  Profile other = sample();
  other.kernels[0].registers = 64;
  merge_into(merged, other);
  EXPECT_EQ(merged.kernels.size(), 3u);
}

// A program that uses OpenCL, which counts launches, and CUDA, which does not.
TEST(ProfileMerge, ACountOfSomeLaunchesIsNone) {
  Profile counted, uncounted, idle;
  counted.coverage.launches_seen = counted.coverage.launches_counted = 50;
  uncounted.coverage.launches_seen = 1000;
  Profile merged = counted;
  merge_into(merged, idle);
  merge_into(merged, counted);
  EXPECT_EQ(merged.coverage.launches_counted, 100);
  merge_into(merged, uncounted);
  merge_into(merged, counted);
  EXPECT_EQ(merged.coverage.launches_seen, 1150);
  EXPECT_EQ(merged.coverage.launches_counted, 0);
}

TEST(ProfileMerge, MatchesDevicesByIdentityNotByIndex) {
  Profile swapped = sample();
  std::swap(swapped.environment.devices[0], swapped.environment.devices[1]);
  for (KernelRow& kernel : swapped.kernels) kernel.device = 1 - kernel.device;
  Profile merged = sample();
  merge_into(merged, swapped);
  EXPECT_EQ(merged.environment.devices.size(), 2u);
  EXPECT_EQ(merged.kernels.size(), 2u);
}

TEST(ProfileSpool, OneUnreadableFileDoesNotCostTheOthers) {
  const Result<std::string> folder = make_temporary_directory("purlin-spool-test");
  ASSERT_TRUE(folder.is_ok());
  ASSERT_TRUE(write_profile(join_path(*folder, "a.plprof"), sample()).is_ok());
  ASSERT_TRUE(write_atomic(join_path(*folder, "b.plprof"), "PURLINPF").is_ok());
  ASSERT_TRUE(write_atomic(join_path(*folder, "note.txt"), "not ours").is_ok());
  const Result<Profile> merged = read_spool(*folder);
  ASSERT_TRUE(merged.is_ok());
  EXPECT_EQ(merged->kernels.size(), 2u);
  EXPECT_TRUE(merged->partial);
  EXPECT_EQ(merged->coverage.notes.back().cause, "unreadable_process_file");
  EXPECT_NE(merged->coverage.notes.back().text.find("b.plprof"), std::string::npos);
  ASSERT_TRUE(remove_tree(*folder).is_ok());
}

}  // namespace
}  // namespace purlin::profile
