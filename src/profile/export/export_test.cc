// SPDX-License-Identifier: Apache-2.0
#include "profile/export/export.h"

#include "base/gzip.h"
#include "base/json/json.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

namespace purlin::profile {
namespace {

std::string written(Result<ExportCounts> (*write)(const Profile&, const ExportSink&),
                    const Profile& profile, ExportCounts* counts = nullptr) {
  std::string text;
  const auto result = write(profile, [&](std::string_view piece) -> Status {
    text += piece;
    return {};
  });
  EXPECT_TRUE(result.is_ok()) << result.status().message();
  if (counts != nullptr && result.is_ok()) *counts = *result;
  return text;
}

// Two processes, one with the number of a device; two devices, one of them shared; streams with
// overlap; a graph; a call that launched nothing and work that nothing launched.
Profile small_profile() {
  Profile profile;
  profile.source = "test";
  profile.environment.devices.resize(2);
  profile.environment.devices[0].name = "NVIDIA H200";
  profile.processes.resize(2);
  profile.processes[0].pid = 1;  // as in a container; a device has it too
  profile.processes[0].command = "/usr/bin/python3 train.py";
  profile.processes[1].pid = 4711;
  profile.processes[1].rank = 1;
  profile.kernels.resize(2);
  profile.kernels[0].name = "_Z4gemmPf";
  profile.kernels[0].launch.grid = {128, 2, 1};
  profile.kernels[0].registers = 40;
  profile.kernels[1].name = "say \"hello\", relu";
  profile.copies.resize(1);
  profile.copies[0].kind = "h2d";
  Timeline& timeline = profile.timeline;
  timeline.names = {"",           "cudaLaunchKernel", "cudaGraphLaunch",
                    "aten::mm",   "ProfilerStep#1",   "cudaDeviceSynchronize",
                    "M=1,N=2,K=3"};
  const auto call = [&](std::int64_t start, std::int64_t duration, std::uint32_t name,
                        std::uint32_t process, std::uint32_t op) {
    Call c;
    c.start_ns = start;
    c.duration_ns = duration;
    c.name = name;
    c.process = process;
    c.thread = 9;
    c.op = op;
    c.kind = name == 5 ? CallKind::kSync : name == 2 ? CallKind::kGraphLaunch : CallKind::kLaunch;
    timeline.calls.push_back(c);
  };
  call(1'000'000'100, 50, 1, 0, 0);
  call(1'000'000'200, 50, 2, 0, kNone);
  call(1'000'000'260, 900, 5, 0, kNone);
  call(1'000'000'300, 40, 1, 1, kNone);
  Op op;
  op.start_ns = 1'000'000'090;
  op.duration_ns = 100;
  op.name = 3;
  op.shape = 6;
  op.thread = 9;
  timeline.ops.push_back(op);
  Range range;
  range.start_ns = 1'000'000'000;
  range.duration_ns = 2000;
  range.name = 4;
  range.thread = 9;
  range.kind = RangeKind::kStep;
  timeline.ranges.push_back(range);
  const auto activity = [&](ActivityKind kind, std::int64_t start, std::int64_t duration,
                            std::uint32_t row, std::uint32_t called, std::uint16_t device,
                            std::uint32_t process) {
    Activity a;
    a.kind = kind;
    a.start_ns = start;
    a.duration_ns = duration;
    a.row = row;
    a.call = called;
    a.device = device;
    a.process = process;
    a.stream = 7;
    timeline.activities.push_back(a);
  };
  activity(ActivityKind::kKernel, 1'000'000'400, 100, 0, 0, 0, 0);
  activity(ActivityKind::kKernel, 1'000'000'450, 100, 1, 1, 0, 0);  // overlaps the one before
  activity(ActivityKind::kKernel, 1'000'000'600, 10, 1, 1, 0, 0);
  activity(ActivityKind::kCopy, 1'000'000'700, 33, 0, kNone, 0, 1);
  timeline.activities.back().bytes = 4096;
  activity(ActivityKind::kKernel, 1'000'000'401, 7, 0, 3, 1, 1);
  sort_timeline(timeline);
  return profile;
}

Profile random_profile(Random& random) {
  Profile profile = small_profile();
  Timeline& timeline = profile.timeline;
  const auto time = [&] { return static_cast<std::int64_t>(random.below(1000)); };
  for (int i = 0; i < 60; ++i) {
    Activity activity = timeline.activities[random.below(4)];
    activity.start_ns = time();
    activity.duration_ns = time() / 8 - 4;
    activity.stream = static_cast<std::uint32_t>(random.below(3));
    timeline.activities.push_back(activity);
    Call call = timeline.calls[random.below(4)];
    call.start_ns = time();
    call.duration_ns = time() / 8;
    timeline.calls.push_back(call);
  }
  sort_timeline(timeline);
  return profile;
}

std::uint64_t events_in(const Profile& profile) {
  const Timeline& timeline = profile.timeline;
  return timeline.activities.size() + timeline.calls.size() + timeline.ops.size() +
         timeline.ranges.size();
}

// Slices of one track nest or follow one another, or a viewer drops them.
void expect_nested(std::vector<std::pair<std::int64_t, std::int64_t>> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.first, -a.second) < std::make_pair(b.first, -b.second);
  });
  std::vector<std::int64_t> open;
  for (const auto& [begin, end] : slices) {
    while (!open.empty() && open.back() <= begin) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(end, open.back());
    }
    open.push_back(end);
  }
}

struct ChromeTrace {
  std::vector<Json> slices, starts, ends, metadata;
};

ChromeTrace parse_chrome(const std::string& text) {
  ChromeTrace trace;
  const Result<Json> json = Json::parse(text);
  EXPECT_TRUE(json.is_ok()) << json.status().message();
  if (!json.is_ok()) return trace;
  for (const Json& event : (*json)["traceEvents"].items()) {
    const std::string& phase = event["ph"].as_string();
    (phase == "X"   ? trace.slices
     : phase == "s" ? trace.starts
     : phase == "f" ? trace.ends
                    : trace.metadata)
        .push_back(event);
    // What the format asks of each event.
    EXPECT_TRUE(event["name"].is_string());
    EXPECT_TRUE(event["pid"].is_int());
    EXPECT_TRUE(event["tid"].is_int());
    EXPECT_TRUE(event["ts"].is_number());
    if (phase == "X") {
      EXPECT_TRUE(event["dur"].is_number());
      EXPECT_TRUE(event["cat"].is_string());
    } else if (phase == "M") {
      EXPECT_TRUE(event["args"].is_object());
    } else {
      EXPECT_TRUE(event["id"].is_int());
    }
  }
  return trace;
}

std::int64_t ns(const Json& us) { return std::llround(us.as_double() * 1000); }

TEST(ExportChrome, EveryEventIsThereAndLinksJoinCallsToTheirWork) {
  Random random(5);
  for (int round = 0; round < 50; ++round) {
    const Profile profile = round == 0 ? small_profile() : random_profile(random);
    ExportCounts counts;
    const ChromeTrace trace = parse_chrome(written(export_chrome, profile, &counts));
    EXPECT_EQ(counts.events, events_in(profile));
    EXPECT_EQ(trace.slices.size(), counts.events);
    EXPECT_EQ(trace.ends.size(), counts.links);

    std::map<std::pair<std::int64_t, std::int64_t>,
             std::vector<std::pair<std::int64_t, std::int64_t>>>
        tracks;
    std::map<std::int64_t, Json> calls;  // by correlation
    for (const Json& slice : trace.slices) {
      const std::int64_t begin = ns(slice["ts"]);
      tracks[{slice["pid"].as_int(), slice["tid"].as_int()}].emplace_back(begin,
                                                                          begin + ns(slice["dur"]));
      if (slice["cat"].as_string().starts_with("cuda_"))
        calls[slice["args"]["correlation"].as_int()] = slice;
    }
    for (const auto& [track, slices] : tracks) expect_nested(slices);
    std::map<std::int64_t, Json> starts;
    for (const Json& start : trace.starts) {
      EXPECT_TRUE(starts.emplace(start["id"].as_int(), start).second) << "one begin of each link";
      const Json& call = calls[start["id"].as_int()];
      EXPECT_EQ(start["ts"], call["ts"]);
      EXPECT_EQ(start["tid"], call["tid"]);
      EXPECT_EQ(start["pid"], call["pid"]);
    }
    for (const Json& end : trace.ends) {
      EXPECT_TRUE(starts.contains(end["id"].as_int()));
      EXPECT_EQ(end["bp"].as_string(), "e");
    }
  }
}

TEST(ExportChrome, NamesTimesAndArguments) {
  const ChromeTrace trace = parse_chrome(written(export_chrome, small_profile()));
  const auto find = [&](std::string_view name) {
    for (const Json& slice : trace.slices)
      if (slice["name"].as_string() == name) return slice;
    return Json();
  };
  const Json gemm = find("gemm(float*)");
  EXPECT_EQ(gemm["cat"].as_string(), "kernel");
  EXPECT_DOUBLE_EQ(gemm["ts"].as_double(), 0.4);  // after the first event of all
  EXPECT_DOUBLE_EQ(gemm["dur"].as_double(), 0.1);
  EXPECT_EQ(gemm["args"]["grid"].dump(), "[128,2,1]");
  EXPECT_EQ(gemm["args"]["registers per thread"].as_int(), 40);
  EXPECT_EQ(find("say \"hello\", relu")["args"]["stream"].as_int(), 7);
  EXPECT_EQ(find("aten::mm")["args"]["shape"].as_string(), "M=1,N=2,K=3");
  EXPECT_EQ(find("Memcpy HtoD (Host -> Device)")["args"]["bytes"].as_int(), 4096);
  EXPECT_EQ(find("ProfilerStep#1")["cat"].as_string(), "user_annotation");
  // Process 1 is not device 1.
  EXPECT_NE(find("aten::mm")["pid"].as_int(), 1);
}

// A reader of protobuf's wire format, independent of the writer.
struct Field {
  int number = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
};
std::optional<std::uint64_t> varint(std::string_view& data) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (data.empty()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(data.front());
    data.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}
std::vector<Field> parse_message(std::string_view data) {
  std::vector<Field> fields;
  while (!data.empty()) {
    const auto tag = varint(data);
    if (!tag) break;
    Field field;
    field.number = static_cast<int>(*tag >> 3);
    if ((*tag & 7) == 0) {
      field.value = varint(data).value_or(0);
    } else if ((*tag & 7) == 1) {
      for (std::size_t i = 0; i < 8; ++i)
        field.value |= std::uint64_t{static_cast<unsigned char>(data[i])} << (8 * i);
      data.remove_prefix(8);
    } else if ((*tag & 7) == 2) {
      const std::uint64_t size = varint(data).value_or(0);
      if (size > data.size()) {
        ADD_FAILURE() << "length beyond the end";
        break;
      }
      field.bytes = data.substr(0, size);
      data.remove_prefix(size);
    } else {
      ADD_FAILURE() << "wire type " << (*tag & 7);
      break;
    }
    fields.push_back(field);
  }
  return fields;
}

TEST(ExportPerfetto, EveryEventIsASliceOfATrackThatIsDescribed) {
  Random random(6);
  for (int round = 0; round < 50; ++round) {
    const Profile profile = round == 0 ? small_profile() : random_profile(random);
    ExportCounts counts;
    const std::string bytes = written(export_perfetto, profile, &counts);
    EXPECT_EQ(counts.events, events_in(profile));

    std::set<std::uint64_t> described;
    std::map<std::uint64_t, std::string> names;
    std::map<std::uint64_t, std::vector<std::int64_t>> open;  // begins, by track
    std::map<std::uint64_t, std::int64_t> last;               // time, by track
    std::map<std::uint64_t, std::size_t> flows;
    std::multiset<std::pair<std::int64_t, std::int64_t>> found, expected;
    for (const Field& packet : parse_message(bytes)) {
      ASSERT_EQ(packet.number, 1);
      std::int64_t timestamp = 0;
      for (const Field& field : parse_message(packet.bytes)) {
        if (field.number == 8) timestamp = static_cast<std::int64_t>(field.value);
        if (field.number == 60)
          for (const Field& inner : parse_message(field.bytes))
            if (inner.number == 1) described.insert(inner.value);
        if (field.number == 12)
          for (const Field& entry : parse_message(field.bytes)) {
            if (entry.number != 2) continue;  // names of events
            std::uint64_t id = 0;
            for (const Field& inner : parse_message(entry.bytes)) {
              if (inner.number == 1) id = inner.value;
              if (inner.number == 2) names[id] = inner.bytes;
            }
          }
        if (field.number != 11) continue;
        std::uint64_t type = 0, track = 0, name = 0;
        for (const Field& inner : parse_message(field.bytes)) {
          if (inner.number == 9) type = inner.value;
          if (inner.number == 11) track = inner.value;
          if (inner.number == 10) name = inner.value;
          if (inner.number == 47) ++flows[inner.value];
        }
        EXPECT_TRUE(described.contains(track));
        EXPECT_GE(timestamp, last[track]) << "a track's events are in order";
        last[track] = timestamp;
        if (type == 1) {
          EXPECT_TRUE(names.contains(name));
          open[track].push_back(timestamp);
        } else {
          ASSERT_EQ(type, 2u);
          ASSERT_FALSE(open[track].empty());
          found.emplace(open[track].back(), timestamp);
          open[track].pop_back();
        }
      }
    }
    for (const auto& [track, begins] : open) EXPECT_TRUE(begins.empty());
    const auto expect = [&](const auto& records) {
      for (const auto& record : records)
        expected.emplace(record.start_ns,
                         record.start_ns + std::max<std::int64_t>(0, record.duration_ns));
    };
    expect(profile.timeline.activities);
    expect(profile.timeline.calls);
    expect(profile.timeline.ops);
    expect(profile.timeline.ranges);
    EXPECT_EQ(found, expected);
    std::size_t ends = 0;
    for (const auto& [id, count] : flows) ends += count - 1;  // each call once, and its work
    EXPECT_EQ(ends, counts.links);
  }
}

std::vector<Field> packets_of(const std::string& bytes, int number) {
  std::vector<Field> out;
  for (const Field& packet : parse_message(bytes))
    for (const Field& field : parse_message(packet.bytes))
      if (field.number == number) out.push_back(field);
  return out;
}

// Perfetto's page about GPU compute: a stage with its launch, and the row's counters at its end.
TEST(ExportPerfetto, KernelsAreRenderStagesWithTheirCounters) {
  Profile profile = small_profile();
  for (KernelRow& row : profile.kernels) row.counters = {{"dram__bytes.sum", 4096, 1}};
  const std::string bytes = written(export_perfetto, profile);
  std::map<std::uint64_t, std::string> counters;
  std::multiset<double> values;
  for (const Field& event : packets_of(bytes, 52))
    for (const Field& field : parse_message(event.bytes)) {
      if (field.number == 1)
        for (const Field& spec : parse_message(field.bytes)) {
          std::uint64_t id = 0;
          std::string name;
          for (const Field& inner : parse_message(spec.bytes)) {
            if (inner.number == 1) id = inner.value;
            if (inner.number == 2) name = inner.bytes;
          }
          counters[id] = name;
        }
      if (field.number != 2) continue;
      std::uint64_t id = 0;
      for (const Field& inner : parse_message(field.bytes)) {
        if (inner.number == 1) id = inner.value;
        if (inner.number == 3 && counters[id] == "dram__bytes.sum")
          values.insert(std::bit_cast<double>(inner.value));
      }
    }
  const std::vector<Field> stages = packets_of(bytes, 53);
  std::size_t kernels = 0;
  for (const Activity& activity : profile.timeline.activities)
    kernels += activity.kind == ActivityKind::kKernel ? 1 : 0;
  ASSERT_GT(kernels, 0u);
  EXPECT_EQ(stages.size(), kernels);
  EXPECT_EQ(values.count(4096), kernels);
  std::map<std::string, std::string> said;
  for (const Field& field : parse_message(stages[0].bytes)) {
    if (field.number != 6) continue;
    const std::vector<Field> pair = parse_message(field.bytes);
    ASSERT_EQ(pair.size(), 2u);
    said[std::string(pair[0].bytes)] = pair[1].bytes;
  }
  EXPECT_EQ(said["kernel_type"], "Compute");
  EXPECT_TRUE(said.contains("launch__grid_size"));
  EXPECT_TRUE(said.contains("workgroup_size"));
}

std::set<std::uint64_t> apis_of(const Profile& profile) {
  std::set<std::uint64_t> apis;
  const std::string bytes = written(export_perfetto, profile);
  for (const Field& interned : packets_of(bytes, 12))
    for (const Field& context : parse_message(interned.bytes)) {
      if (context.number != 23) continue;
      for (const Field& inner : parse_message(context.bytes))
        if (inner.number == 3) apis.insert(inner.value);
    }
  return apis;
}

// Perfetto's page has words for CUDA, OpenCL and HIP: a context says which.
TEST(ExportPerfetto, ContextsStateTheApiOfTheDevices) {
  Profile profile = small_profile();
  EXPECT_EQ(apis_of(profile), std::set<std::uint64_t>{});
  for (DeviceInfo& device : profile.environment.devices) device.backend = "cuda";
  EXPECT_EQ(apis_of(profile), std::set<std::uint64_t>{4});
  profile.environment.devices[1].backend = "hip";
  EXPECT_EQ(apis_of(profile), std::set<std::uint64_t>{});
}

// Perfetto's reader knows a counter by its id alone, over all GPUs.
TEST(ExportPerfetto, CountersOfTwoGpusHaveDifferentIds) {
  Profile profile = small_profile();
  for (KernelRow& row : profile.kernels) row.counters = {{"dram__bytes.sum", 4096, 1}};
  std::map<std::uint64_t, std::set<std::uint64_t>> gpus_of;
  std::size_t described = 0;
  const std::string bytes = written(export_perfetto, profile);
  for (const Field& event : packets_of(bytes, 52)) {
    std::uint64_t gpu = 0;
    std::vector<std::uint64_t> ids;
    for (const Field& field : parse_message(event.bytes)) {
      if (field.number == 3) gpu = field.value;
      const std::vector<Field> inner =
          field.number == 3 ? std::vector<Field>{} : parse_message(field.bytes);
      if (field.number == 1) {
        ++described;
        for (const Field& spec : inner) ids.push_back(parse_message(spec.bytes)[0].value);
      } else if (field.number == 2) {
        ids.push_back(inner[0].value);
      }
    }
    for (const std::uint64_t id : ids) gpus_of[id].insert(gpu);
  }
  EXPECT_EQ(described, 2u);
  EXPECT_EQ(gpus_of.size(), 4u);
  for (const auto& [id, gpus] : gpus_of) EXPECT_EQ(gpus.size(), 1u) << id;
}

// Stages are a sample of each row: the slices of the streams are complete.
TEST(ExportPerfetto, RenderStagesAreBounded) {
  Profile profile = small_profile();
  const auto kernel =
      std::find_if(profile.timeline.activities.begin(), profile.timeline.activities.end(),
                   [](const Activity& a) { return a.kind == ActivityKind::kKernel; });
  const Activity one = *kernel;
  profile.timeline.activities.assign(500, one);
  for (std::size_t i = 0; i < 500; ++i)
    profile.timeline.activities[i].start_ns = 1000 * static_cast<std::int64_t>(i);
  const std::string bytes = written(export_perfetto, profile);
  EXPECT_EQ(packets_of(bytes, 53).size(), 100u);
}

// "stack from the root; labels" -> launches, ns: a pprof profile as its readers see it.
std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> pprof_samples(
    const std::string& compressed) {
  const Result<std::string> data = gunzip(compressed, 1 << 20);
  EXPECT_TRUE(data.is_ok());
  const std::vector<Field> profile = parse_message(*data);
  std::vector<std::string> strings;
  std::map<std::uint64_t, std::string> functions, locations;
  for (const Field& field : profile)
    if (field.number == 6) strings.emplace_back(field.bytes);
  EXPECT_EQ(strings.at(0), "");
  for (const Field& field : profile)
    if (field.number == 5) {
      const std::vector<Field> function = parse_message(field.bytes);
      functions[function.at(0).value] = strings.at(function.at(1).value);
    }
  for (const Field& field : profile)
    if (field.number == 4) {
      const std::vector<Field> location = parse_message(field.bytes);
      locations[location.at(0).value] =
          functions.at(parse_message(location.at(1).bytes).at(0).value);
    }
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> samples;
  for (const Field& field : profile) {
    if (field.number != 2) continue;
    std::string stack, labels;
    std::vector<std::uint64_t> values;
    for (const Field& part : parse_message(field.bytes)) {
      if (part.number == 1)
        stack = locations.at(part.value) + (stack.empty() ? "" : " / ") + stack;
      else if (part.number == 2)
        values.push_back(part.value);
      else
        labels += "; " + strings.at(parse_message(part.bytes).at(1).value);
    }
    EXPECT_TRUE(samples.emplace(stack + labels, std::pair(values.at(0), values.at(1))).second);
  }
  return samples;
}

TEST(ExportPprof, StacksOfDeviceOpsAndKernel) {
  Profile profile = small_profile();
  profile.kernels[0].shape = "M=1,N=2,K=3";
  const std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> expected = {
      {"GPU 0 (NVIDIA H200) / aten::mm / gemm(float*); M=1,N=2,K=3", {1, 100}},
      {"GPU 0 (NVIDIA H200) / say \"hello\", relu", {2, 110}},
      {"GPU 0 (NVIDIA H200) / [memory] h2d", {1, 33}},
      {"GPU 1 / gemm(float*); M=1,N=2,K=3", {1, 7}}};
  EXPECT_EQ(pprof_samples(written(export_pprof, profile)), expected);
}

TEST(ExportPprof, SumsOfAProfileWithoutATimeline) {
  Profile profile;
  profile.kernels.resize(2);
  profile.kernels[0].name = profile.kernels[1].name = "k";
  profile.kernels[0].op = "aten::mm";
  profile.kernels[0].duration.add(50, 4);  // one of four launches was timed
  profile.kernels[1].duration.add(7, 1);
  const std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> expected = {
      {"GPU 0 / aten::mm / k", {4, 200}}, {"GPU 0 / k", {1, 7}}};
  EXPECT_EQ(pprof_samples(written(export_pprof, profile)), expected);
  const auto nothing = export_pprof({}, [](std::string_view) -> Status { return {}; });
  EXPECT_EQ(nothing.status().code(), Code::kInvalid);
}

TEST(ExportCsv, OneLineForEachActivity) {
  ExportCounts counts;
  const std::string text = written(export_csv, small_profile(), &counts);
  EXPECT_EQ(counts.events, 5u);
  EXPECT_EQ(counts.links, 4u);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  EXPECT_NE(text.find("kernel,gemm(float*),0,0,7,1000000400,100,128x2x1,1x1x1,0,40,,0,"
                      "cudaLaunchKernel,9,1000000100,50,,,\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("kernel,\"say \"\"hello\"\", relu\",0,0,7,"), std::string::npos);
  EXPECT_NE(text.find("copy,h2d,0,1,7,1000000700,33,,,,,4096,0,,,,,,,\n"), std::string::npos);
}

TEST(Export, AProfileOfSketchesIsRefused) {
  Profile profile;
  profile.kernels.resize(3);
  for (const auto write : {export_chrome, export_perfetto, export_csv}) {
    const auto result = write(profile, [](std::string_view) -> Status { return {}; });
    ASSERT_FALSE(result.is_ok());
    EXPECT_EQ(result.status().code(), Code::kInvalid);
    EXPECT_NE(result.status().message().find("no timeline"), std::string::npos);
  }
}

TEST(Export, AFullDiskEndsIt) {
  Random random(8);
  const Profile profile = random_profile(random);
  for (const auto write : {export_chrome, export_perfetto, export_csv}) {
    const auto result = write(
        profile, [](std::string_view) -> Status { return error(Code::kIo, "no space left"); });
    ASSERT_FALSE(result.is_ok());
    EXPECT_EQ(result.status().message(), "no space left");
  }
}

}  // namespace
}  // namespace purlin::profile
