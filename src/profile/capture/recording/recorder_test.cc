// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/recording/recorder.h"

#include "base/json/json.h"
#include "profile/capture/recording/json_text.h"
#include "profile/format/file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <thread>
#include <vector>

namespace purlin::profile::capture {
namespace {

LaunchFacts launch(std::string_view name, std::uint32_t grid, std::int64_t start) {
  LaunchFacts facts;
  facts.name = name;
  facts.grid = {grid, 1, 1};
  facts.block = {64, 1, 1};
  facts.start_ns = start;
  facts.duration_ns = 1000;
  return facts;
}

Recorder& with_process(Recorder& recorder) {
  recorder.set_meta(R"({"pid":1,"layer":"cuda"})", "[]");
  return recorder;
}

Profile decode(const std::string& bytes) {
  const Result<Profile> profile = decode_profile(bytes);
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return profile.value_or(Profile());
}

// A plain profile: the timeline is of the last windows, and the rows are of all launches.
TEST(Recorder, LaterTimelineWindowsReplaceEarlierOnes) {
  constexpr std::int64_t kStart = 1'700'000'000'000'000'000, kMs = 1'000'000;
  Recorder recorder(false);
  with_process(recorder);
  std::string bytes;
  for (std::int64_t ms = 0; ms < 1500; ++ms) {
    LaunchFacts facts = launch("k", 1, kStart + ms * kMs);
    facts.queued_ns = facts.start_ns - 5'000;
    Recorder::Batch(recorder).launch(facts);
    if (ms % 100 == 99) bytes += recorder.drain(bytes.size(), kStart + ms * kMs, ms == 1499);
  }
  const Profile profile = decode(bytes);
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].duration.count(), 1500);
  ASSERT_EQ(profile.timeline.activities.size(), 1100u);
  EXPECT_EQ(profile.timeline.activities[0].start_ns, kStart + 400 * kMs);
  EXPECT_FALSE(profile.processes[0].timeline_requested);
  for (const Activity& activity : profile.timeline.activities) {
    ASSERT_LT(activity.call, profile.timeline.calls.size());
    const Call& call = profile.timeline.calls[activity.call];
    EXPECT_EQ(call.start_ns, activity.start_ns - 5'000);
    EXPECT_EQ(call.duration_ns, 0);
    EXPECT_EQ(profile.timeline.names[call.name], kQueuedCall);
  }
}

// By this the PyTorch hook tells a program that works from one that loads a model.
TEST(Recorder, LaunchesThatComputeAreCounted) {
  Recorder recorder(false);
  with_process(recorder);
  Recorder::Batch(recorder).launch(launch("direct_copy_kernel", 1, 1000));
  EXPECT_EQ(recorder.computing_launches(), 0);
  for (const char* name : {"sm80_xmma_gemm_f16", "pytorch_flash::flash_fwd_kernel", "nvjet_hsh_64"})
    for (int launches = 0; launches < 2; ++launches)
      Recorder::Batch(recorder).launch(launch(name, 1, 2000));
  recorder.drain(0, 3000, false);
  Recorder::Batch(recorder).launch(launch("nvjet_hsh_64", 1, 4000));
  EXPECT_EQ(recorder.computing_launches(), 7);
}

TEST(Recorder, ARequestedWindowIsTheTimeline) {
  constexpr std::int64_t kStart = 1'700'000'000'000'000'000, kMs = 1'000'000;
  Recorder recorder(false);
  with_process(recorder);
  for (std::int64_t ms = 0; ms < 300; ++ms) {
    LaunchFacts facts = launch("k", 1, kStart + ms * kMs);
    facts.requested = ms >= 200 && ms < 250;
    Recorder::Batch(recorder).launch(facts);
  }
  const Profile profile = decode(recorder.drain(0, kStart, true));
  EXPECT_EQ(profile.kernels[0].duration.count(), 300);
  EXPECT_EQ(profile.timeline.activities.size(), 50u);
  EXPECT_TRUE(profile.processes[0].timeline_requested);
}

TEST(Recorder, PeriodsAddUp) {
  Recorder recorder(true);
  with_process(recorder);
  std::string file = recorder.drain(0, 1, false);
  for (int period = 0; period < 3; ++period) {
    for (int i = 0; i < 10; ++i) Recorder::Batch(recorder).launch(launch("a", 1, period * 100 + i));
    if (period > 0) Recorder::Batch(recorder).launch(launch("b", 2, period));
    if (period > 0) Recorder::Batch(recorder).copy({"memset", 0, 3, 8, 900, 50});
    Recorder::Batch(recorder).copy({"h2d", 0, 9, 64, 100 * period, 500});
    recorder.count_launches(11);
    file += recorder.drain(file.size(), period, false);
  }
  recorder.lose_launches(1, "gone", "gone for a test");
  recorder.note("aside", "was aside", 0, 1.5);
  recorder.note("aside", "was aside", 0, 1.5);
  file += recorder.drain(file.size(), 9, true);
  const Profile profile = decode(file);
  EXPECT_FALSE(profile.partial);
  ASSERT_EQ(profile.kernels.size(), 2u);
  EXPECT_EQ(profile.kernels[0].duration.count(), 30);
  EXPECT_EQ(profile.kernels[0].first_ns, 0);
  EXPECT_EQ(profile.kernels[0].last_ns, 1209);
  EXPECT_EQ(profile.kernels[1].duration.count(), 2);
  ASSERT_EQ(profile.copies.size(), 2u);
  EXPECT_EQ(profile.copies[0].kind, "h2d");
  EXPECT_EQ(profile.copies[0].bytes, 192);
  EXPECT_EQ(profile.copies[0].duration.count(), 3);
  EXPECT_EQ(profile.copies[1].kind, "memset");
  EXPECT_EQ(profile.timeline.activities.size(), 37u);
  double copied = 0, set = 0;
  for (const Activity& activity : profile.timeline.activities) {
    if (activity.kind == ActivityKind::kKernel) continue;
    const bool is_set = activity.kind == ActivityKind::kSet;
    EXPECT_EQ(activity.row, is_set ? 1u : 0u);
    EXPECT_EQ(activity.stream, is_set ? 3u : 9u);
    EXPECT_EQ(activity.duration_ns, is_set ? 50 : 500);
    (is_set ? set : copied) += static_cast<double>(activity.bytes);
  }
  EXPECT_EQ(copied, 192);
  EXPECT_EQ(set, 16);
  EXPECT_EQ(profile.coverage.launches_seen, 32);
  EXPECT_EQ(profile.coverage.launches_counted, 33);
  EXPECT_EQ(profile.coverage.launches_lost, 1);
  ASSERT_EQ(profile.coverage.notes.size(), 2u);
  EXPECT_EQ(profile.coverage.notes[0].seconds, 3.0);
}

TEST(Recorder, CountersJoinTheirRow) {
  Recorder recorder(false);
  with_process(recorder);
  Recorder::Batch(recorder).launch(launch("a", 1, 0));
  recorder.add_counters(launch("a", 1, 0), {"time", "bytes"}, {10, 100});
  recorder.add_counters(launch("a", 1, 0), {"time", "ratio"}, {20, std::nan("")});
  std::string file = recorder.drain(0, 1, false);
  recorder.add_counters(launch("a", 1, 0), {"time"}, {60});
  recorder.add_counters(launch("b", 1, 0), {"time"}, {5});  // no launch of it was recorded
  file += recorder.drain(file.size(), 2, true);
  const Profile profile = decode(file);
  ASSERT_EQ(profile.kernels.size(), 2u);
  EXPECT_EQ(profile.kernels[1].duration.count(), 0);
  EXPECT_EQ(profile.kernels[1].counters.size(), 1u);
  std::map<std::string, Counter> counters;
  for (const Counter& counter : profile.kernels[0].counters) counters[counter.name] = counter;
  ASSERT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters["time"].value, 30);
  EXPECT_EQ(counters["time"].launches, 3);
  EXPECT_EQ(counters["bytes"].value, 100);
  EXPECT_EQ(counters["bytes"].launches, 1);
}

// The driver knows other numbers of a kernel than CUPTI's records have.
TEST(Recorder, CountersFindTheirRowForAnyResources) {
  Recorder recorder(false);
  with_process(recorder);
  LaunchFacts recorded = launch("a", 1, 0);
  recorded.registers = 16;
  Recorder::Batch(recorder).launch(recorded);
  LaunchFacts read = launch("a", 1, 0);
  read.registers = 8;
  read.local_bytes = 256;
  recorder.add_counters(read, {"time"}, {10});
  read.grid = {2, 1, 1};
  recorder.add_counters(read, {"time"}, {20});
  const Profile profile = decode(recorder.drain(0, 1, true));
  ASSERT_EQ(profile.kernels.size(), 2u);
  ASSERT_EQ(profile.kernels[0].counters.size(), 1u);
  EXPECT_EQ(profile.kernels[0].counters[0].value, 10);
  EXPECT_EQ(profile.kernels[0].registers, 16u);
}

TEST(Recorder, AnIdlePeriodWritesNothing) {
  Recorder recorder(false);
  with_process(recorder);
  const std::string first = recorder.drain(0, 1, false);
  EXPECT_FALSE(first.empty());
  EXPECT_TRUE(recorder.drain(first.size(), 2, false).empty());
  EXPECT_FALSE(recorder.drain(first.size(), 3, true).empty());
}

TEST(Recorder, MoreKernelsThanRowsAreFoldedAndCounted) {
  Recorder recorder(false);
  with_process(recorder);
  constexpr std::uint32_t kKernels = Recorder::kMaxKernels + 500;
  for (std::uint32_t i = 0; i < kKernels; ++i)
    Recorder::Batch(recorder).launch(launch(i % 2 == 0 ? "even" : "odd", i, i));
  for (int i = 0; i < 7; ++i)
    Recorder::Batch(recorder).launch(launch("name" + std::to_string(i), 1, 5));
  const Profile profile = decode(recorder.drain(0, 1, true));
  ASSERT_EQ(profile.kernels.size(), Recorder::kMaxKernels + 1);
  EXPECT_EQ(profile.kernels.back().name, "(other kernels)");
  EXPECT_EQ(profile.kernels.back().duration.count(), 507);
  EXPECT_EQ(profile.coverage.launches_seen, kKernels + 7);
  ASSERT_EQ(profile.coverage.notes.size(), 1u);
  EXPECT_EQ(profile.coverage.notes[0].count, 507);
}

TEST(Recorder, LaunchesDifferByTheTextOfTheirNamesNotByItsAddress) {
  Recorder recorder(false);
  with_process(recorder);
  std::string file = recorder.drain(0, 1, false);
  {
    Recorder::Batch batch(recorder);
    const std::uint32_t op = batch.add_op("op", "", "");
    std::string place = "one", elsewhere = "one";
    for (int i = 0; i < 3; ++i) {
      batch.launch(launch(place, 1, i));
      batch.launch(launch(elsewhere, 1, i));
      LaunchFacts with_op = launch(place, 1, i);
      with_op.op = op;
      batch.launch(with_op);
      batch.launch(launch(place, 2, i));
    }
    place = "two";  // as the next module's kernel may be
    for (int i = 0; i < 5; ++i) batch.launch(launch(place, 1, i));
  }
  file += recorder.drain(file.size(), 2, true);
  std::map<std::string, double> counts;
  for (const KernelRow& kernel : decode(file).kernels)
    counts[kernel.name + '/' + std::to_string(kernel.launch.grid[0]) + '/' + kernel.op] +=
        kernel.duration.count();
  EXPECT_EQ(counts, (std::map<std::string, double>{
                        {"one/1/", 6}, {"one/1/op", 3}, {"one/2/", 3}, {"two/1/", 5}}));
}

TEST(Recorder, ThreadsDoNotLoseLaunches) {
  Recorder recorder(true);
  with_process(recorder);
  std::string file = recorder.drain(0, 1, false);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&recorder, t] {
      for (int i = 0; i < 2000; ++i)
        Recorder::Batch(recorder).launch(launch("k" + std::to_string(i % 5), 1, t * 10'000 + i));
    });
  for (int i = 0; i < 20; ++i) file += recorder.drain(file.size(), i, false);
  for (std::thread& thread : threads) thread.join();
  file += recorder.drain(file.size(), 99, true);
  const Profile profile = decode(file);
  double count = 0;
  for (const KernelRow& row : profile.kernels) count += row.duration.count();
  EXPECT_EQ(count, 8000);
  EXPECT_EQ(profile.timeline.activities.size(), 8000u);
}

TEST(JsonText, IsJsonForAnyBytes) {
  const std::string valid = "na\xc3\xafve \"quoted\"\\\n";
  const std::string damaged = "bad \xff\xc3 end";
  const Result<Json> parsed =
      Json::parse(JsonText().text("a", valid).text("b", damaged).real("c", 0.5).finish());
  ASSERT_TRUE(parsed.is_ok()) << parsed.status().message();
  EXPECT_EQ((*parsed)["a"].as_string(), valid);
  EXPECT_NE((*parsed)["b"].as_string().find("end"), std::string::npos);
  EXPECT_EQ((*parsed)["c"].as_double(), 0.5);
}

}  // namespace
}  // namespace purlin::profile::capture
