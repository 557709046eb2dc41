// SPDX-License-Identifier: Apache-2.0
// Small traces written here, one for each layout and each way in which a trace can be odd.
#include "profile/import/chrome/trace.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::profile {
namespace {

Result<Profile> import_layout(std::string_view text, const ImportOptions& options = {}) {
  return import_chrome_trace(Input::from_bytes(text), "trace", options);
}

Profile import_ok(std::string_view text, const ImportOptions& options = {}) {
  Result<Profile> profile = import_layout(text, options);
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return profile.is_ok() ? std::move(profile).value() : Profile{};
}

std::string of_events(std::string_view events, std::string_view members = "") {
  return fmt::format(R"({{{}"traceEvents":[{}]}})", members, events);
}

std::string kernel(std::string_view name, int start_us, int correlation,
                   std::string_view more = "") {
  return fmt::format(
      R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":5,"args":{{"device":0,)"
      R"("stream":7,"correlation":{},"grid":[2,1,1],"block":[64,1,1]{}}}}})",
      name, start_us, correlation, more);
}

std::string host(std::string_view category, std::string_view name, int start_us, int duration_us,
                 std::string_view args) {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","pid":42,"tid":42,"ts":{},"dur":{},"args":{{{}}}}})",
      category, name, start_us, duration_us, args);
}

const CoverageNote* layout_note(const Profile& profile, std::string_view cause) {
  for (const CoverageNote& note : profile.coverage.notes)
    if (note.cause == cause) return &note;
  return nullptr;
}

TEST(ChromeLayouts, ABeginAndItsEndAreOneEvent) {
  const std::string head = R"("pid":0,"tid":7,"ts":)";
  const Profile profile = import_ok(of_events(
      R"({"ph":"B","cat":"kernel","name":"outer",)" + head +
      R"(10.5,"args":{"device":0,"stream":7,"grid":[2,1,1],"block":[64,1,1]}},)" +
      // Another track, with an end that comes in between.
      R"({"ph":"B","cat":"kernel","name":"other","pid":0,"tid":8,"ts":11,"args":{"device":0,"stream":8}},)" +
      R"({"ph":"E",)" + head + R"(15.75},)" +
      R"({"ph":"E","pid":0,"tid":8,"ts":31,"args":{"grid":[4,1,1]}},)" +
      // Without a begin; and a begin without an end.
      R"({"ph":"E",)" + head + R"(40},)" + R"({"ph":"B","cat":"kernel","name":"cut",)" + head +
      R"(50,"args":{}})"));
  ASSERT_EQ(profile.kernels.size(), 2u);
  for (const KernelRow& row : profile.kernels) {
    const bool outer = row.name == "outer";
    EXPECT_EQ(row.duration.total_ns(), outer ? 5250 : 20000) << row.name;
  }
  const CoverageNote* const note = layout_note(profile, "not_understood");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->count, 2);
}

TEST(ChromeLayouts, WhatComesBeforeAndBehindTheEventsDoesNotMatter) {
  const std::string events = kernel("k", 10, 1);
  EXPECT_EQ(import_ok("[" + events + "]").kernels.size(), 1u);
  EXPECT_EQ(import_ok("\xEF\xBB\xBF [" + events + ",]").kernels.size(), 1u);
  EXPECT_EQ(import_ok("[" + events + "] trailing garbage").kernels.size(), 1u);
  const Profile profile = import_ok(
      R"({"schemaVersion":1,"nested":{"traceEvents":[1]},"traceEvents":[)" + events +
      R"(],"distributedInfo":{"backend":"nccl","rank":3,"world_size":8},)"
      R"("WARNING":["Out-of-range = 7"],"deviceProperties":[{"id":0,"name":"V","numSms":80}],)"
      R"("baseTimeNanoseconds":1700000000000000000}garbage)");
  EXPECT_EQ(profile.kernels.at(0).first_ns, 1700000000000010000);
  EXPECT_EQ(profile.processes.at(0).rank, 3);
  EXPECT_EQ(profile.environment.devices.at(0).compute_units, 80);
  EXPECT_NE(layout_note(profile, "recorder_message"), nullptr);
  EXPECT_NE(layout_note(profile, "no_calls"), nullptr);
  EXPECT_FALSE(profile.partial);
}

TEST(ChromeLayouts, AMemberThatIsNoJsonIsNamed) {
  const Profile profile = import_ok(
      of_events(kernel("k", 1, 1), R"("deviceProperties":[{"id":0,,"name":}],"schemaVersion":1,)"));
  EXPECT_EQ(profile.kernels.size(), 1u);
  const CoverageNote* note = layout_note(profile, "members_unreadable");
  ASSERT_NE(note, nullptr);
  EXPECT_NE(note->text.find("deviceProperties"), std::string::npos);
  EXPECT_NE(layout_note(profile, "no_device_info"), nullptr);
}

TEST(ChromeLayouts, AnUnclosedListIsPartial) {
  EXPECT_TRUE(import_ok("[" + kernel("k", 10, 1)).partial);
  EXPECT_TRUE(import_ok("[" + kernel("k", 10, 1) + ",").partial);
}

TEST(ChromeLayouts, ASecondDocumentIsNotOverlooked) {
  const std::string one = of_events(kernel("k", 10, 1));
  const Profile twice = import_ok(one + "\n" + one);
  EXPECT_TRUE(twice.partial);
  EXPECT_EQ(twice.coverage.launches_seen, 1);
  EXPECT_TRUE(import_ok("[" + kernel("k", 10, 1) + "]" + one).partial);
  EXPECT_FALSE(import_ok(one + "\n \n").partial);
}

// PyTorch does not escape the quotes in a name: such an event is lost, those behind it are not.
TEST(ChromeLayouts, ReadingGoesOnBehindADamagedEvent) {
  const std::string text = of_events(kernel("a", 1, 1) + "," + kernel("say \"b\" {", 10, 2) +
                                     ",\n" + kernel("c", 20, 3) + ",#!," + kernel("d", 30, 4));
  const Profile profile = import_ok(text);
  ASSERT_EQ(profile.kernels.size(), 3u);
  EXPECT_EQ(profile.kernels[1].name, "c");
  EXPECT_EQ(profile.kernels[2].name, "d");
  EXPECT_TRUE(profile.partial);
  const CoverageNote* note = layout_note(profile, "damaged");
  ASSERT_NE(note, nullptr);
  EXPECT_NE(note->text.find(fmt::format("at byte {} ", text.find("b\" {"))), std::string::npos)
      << note->text;
  EXPECT_NE(note->text.find("later events were read"), std::string::npos);
}

TEST(ChromeLayouts, EventsOutOfOrderFindOneAnother) {
  const Profile profile =
      import_ok(of_events(kernel("k2", 40, 2) + "," + kernel("k1", 20, 1) + "," +
                          host("cuda_runtime", "cudaLaunchKernel", 31, 2, R"("correlation":2)") +
                          "," + host("cpu_op", "aten::inner", 30, 5, R"("External id":2)") + "," +
                          host("cuda_runtime", "cudaLaunchKernel", 11, 2, R"("correlation":1)") +
                          "," + host("cpu_op", "aten::outer", 10, 30, R"("External id":1)")));
  const Timeline& timeline = profile.timeline;
  ASSERT_EQ(timeline.activities.size(), 2u);
  EXPECT_EQ(profile.kernels.at(timeline.activities[0].row).name, "k1");
  EXPECT_EQ(profile.kernels.at(timeline.activities[0].row).op, "aten::outer");
  EXPECT_EQ(profile.kernels.at(timeline.activities[1].row).op, "aten::inner");
  EXPECT_EQ(timeline.ops.at(1).parent, 0u);
}

TEST(ChromeLayouts, TheInnermostOpWithInputsSaysTheShape) {
  const std::string dims = R"("Input Dims":[[8,16],[16,4]],"Input type":["float","float"])";
  const Profile profile = import_ok(of_events(
      host("cpu_op", "aten::linear", 0, 100, dims) + "," +
      host("cpu_op", "aten::mm", 10, 80, dims) + "," + host("cpu_op", "helper", 20, 50, "") + "," +
      host("cuda_runtime", "cudaLaunchKernel", 30, 2, R"("correlation":1)") + "," +
      kernel("k", 40, 1)));
  EXPECT_EQ(profile.kernels.at(0).op, "aten::mm");
  EXPECT_EQ(profile.kernels.at(0).shape, "M=8,N=4,K=16");
  EXPECT_EQ(profile.kernels.at(0).dtype, "f32");
}

// PyTorch 1.8: the whole has image, gradient and weight, its part only the first two.
TEST(ChromeLayouts, APartOfAnOpHasTheShapeOfTheWhole) {
  const std::string name = "aten::cudnn_convolution_backward";
  const Profile profile = import_ok(
      of_events(host("cpu_op", name.c_str(), 0, 100,
                     R"("Input Dims":[[32,64,7,7],[32,128,7,7],[128,64,1,1],[],[],[],[]])") +
                "," +
                host("cpu_op", (name + "_weight").c_str(), 10, 80,
                     R"("Input Dims":[[],[32,128,7,7],[32,64,7,7],[],[],[],[]])") +
                "," + host("cuda_runtime", "cudaLaunchKernel", 30, 2, R"("correlation":1)") + "," +
                kernel("k", 40, 1)));
  EXPECT_EQ(profile.kernels.at(0).op, name);
  EXPECT_EQ(profile.kernels.at(0).shape, "N=32,C=64,H=7,W=7,K=128,R=1,S=1,P=7,Q=7,gradients=2");
}

TEST(ChromeLayouts, OfDuplicateCorrelationIdsTheLaunchBeforeTheKernelCounts) {
  const Profile profile = import_ok(
      of_events(host("cuda_runtime", "cudaLaunchKernel", 10, 2, R"("correlation":1)") + "," +
                host("cuda_runtime", "cudaStreamSynchronize", 15, 2, R"("correlation":1)") + "," +
                host("cuda_runtime", "cudaLaunchKernel", 50, 2, R"("correlation":1)") + "," +
                kernel("k", 30, 1) + "," + kernel("k", 60, 1)));
  const Timeline& timeline = profile.timeline;
  EXPECT_EQ(timeline.calls.at(timeline.activities.at(0).call).start_ns, 10000);
  EXPECT_EQ(timeline.calls.at(timeline.activities.at(1).call).start_ns, 50000);
  EXPECT_EQ(profile.coverage.launches_lost, 0);
}

// PyTorch with enable_cuda_sync_events.
TEST(ChromeLayouts, ASyncEventNamesTheStreamsOfItsCall) {
  const auto sync = [](const char* name, const char* args) {
    return fmt::format(
        R"({{"ph":"X","cat":"cuda_sync","name":"{}","pid":0,"tid":13,"ts":20,"dur":1,"args":{{{}}}}})",
        name, args);
  };
  const Profile profile = import_ok(of_events(
      host("cuda_runtime", "cudaStreamWaitEvent", 20, 2, R"("correlation":5)") + "," +
      host("cuda_runtime", "cudaStreamSynchronize", 30, 2, R"("correlation":6)") + "," +
      sync("Stream Wait Event",
           R"("wait_on_stream":-1,"wait_on_cuda_event_id":28,"stream":13,"correlation":5)") +
      "," + sync("Stream Sync", R"("stream":7,"correlation":6)") + "," +
      sync("Context Sync", R"("stream":-1,"correlation":7)") + "," + kernel("k", 60, 9)));
  ASSERT_EQ(profile.timeline.calls.size(), 2u);
  EXPECT_EQ(profile.timeline.calls[0].holds, 13u);
  EXPECT_EQ(profile.timeline.calls[0].awaits, kNone);
  EXPECT_EQ(profile.timeline.calls[1].awaits, 7u);
  EXPECT_EQ(profile.timeline.calls[1].holds, kNone);
}

TEST(ChromeLayouts, ALaunchWithoutItsKernelIsLost) {
  const Profile profile = import_ok(
      of_events(host("cuda_runtime", "cudaLaunchKernel", 10, 9, R"("correlation":1)") + "," +
                // the driver's part of the first
                host("cuda_driver", "cuLaunchKernel", 12, 4, R"("correlation":2)") + "," +
                host("cuda_runtime", "cudaLaunchKernel", 30, 9, R"("correlation":3)") + "," +
                kernel("k", 60, 3)));
  EXPECT_EQ(profile.coverage.launches_seen, 1);
  EXPECT_EQ(profile.coverage.launches_lost, 1);
  EXPECT_NE(layout_note(profile, "launches_without_kernel"), nullptr);
}

TEST(ChromeLayouts, LaunchesOfThreadsAtOneTimeAreToldApart) {
  const auto call = [](const char* category, const char* name, int thread, int start, int duration,
                       int correlation) {
    return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":42,"tid":{},"ts":{},"dur":{},)"
                       R"("args":{{"correlation":{}}}}},)",
                       category, name, thread, start, duration, correlation);
  };
  const Profile profile =
      import_ok(of_events(call("cuda_runtime", "cudaLaunchKernel", 1, 10, 20, 1) +
                          call("cuda_runtime", "cudaLaunchKernel", 2, 11, 20, 2) +
                          call("cuda_driver", "cuLaunchKernel", 1, 12, 4, 3) +
                          call("cuda_driver", "cuLaunchKernel", 2, 13, 4, 4) + kernel("a", 60, 3) +
                          "," + kernel("b", 70, 4)));
  EXPECT_EQ(profile.coverage.launches_seen, 2);
  EXPECT_EQ(profile.coverage.launches_lost, 0);
}

TEST(ChromeLayouts, OddNumbersAreLeftOutAndCounted) {
  const Profile profile = import_ok(of_events(
      R"({"ph":"X","cat":"kernel","name":"a","ts":1e300,"dur":1},)"
      R"({"ph":"X","cat":"kernel","name":"b","ts":"soon","dur":1},)"
      R"({"ph":"X","cat":"kernel","name":"c","ts":5,"dur":-3},)"
      R"({"ph":"X","cat":"kernel","name":"d","ts":5,"dur":99999999999999999999999999},)"
      R"({"ph":"X","cat":"kernel","name":"e"},)"
      R"({"ph":"X","cat":"kernel","name":"f","ts":1.5e3,"dur":"2.5","pid":-7,"args":null},)"
      R"({"ph":"X","cat":"kernel","name":"g","ts":7,"dur":1,"args":{"grid":[-1,99999999999],)"
      R"("device":-5,"stream":"0x7f00dead0000","correlation":-1,"registers per thread":1e99}})"));
  EXPECT_EQ(layout_note(profile, "bad_times")->count, 4);
  EXPECT_EQ(layout_note(profile, "negative_durations")->count, 1);
  ASSERT_EQ(profile.kernels.size(), 2u);
  EXPECT_EQ(profile.kernels[1].name, "f");
  EXPECT_EQ(profile.kernels[1].duration.total_ns(), 2500);
  EXPECT_EQ(profile.kernels[1].first_ns, 1500000);
  EXPECT_EQ(profile.kernels[0].launch.grid, (Dim3{0, 0xFFFFFFFFu, 1}));
}

TEST(ChromeLayouts, NamesThatAreNoUtf8OrEscapedBecomeText) {
  const Profile profile = import_ok(
      of_events(kernel(R"(a\"b\u00e9\ud83d\ude00\n\q)", 1, 1) + "," + kernel("x\xff\xc3y", 2, 2)));
  ASSERT_EQ(profile.kernels.size(), 2u);
  EXPECT_EQ(profile.kernels[0].name, "a\"bé😀 q");
  EXPECT_EQ(profile.kernels[1].name, "x��y");
}

TEST(ChromeLayouts, BombsCostNothing) {
  const std::string deep = R"({"ph":"X","cat":"kernel","name":"d","ts":1,"dur":1,"args":{"x":)" +
                           std::string(2'000'000, '[') + std::string(2'000'000, ']') + "}}";
  const Profile nested = import_ok(of_events(deep + "," + kernel("k", 3, 1), R"("m":[[[]]],)"));
  EXPECT_EQ(nested.kernels.size(), 2u);
  const std::string huge = R"({"ph":"X","cat":"kernel","name":"h","ts":1,"dur":1,"args":{"x":")" +
                           std::string(20 << 20, 'x') + "\"}}";
  const Profile profile = import_ok(of_events(huge + "," + kernel("k", 3, 1)));
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].name, "k");
  EXPECT_EQ(layout_note(profile, "oversized_events")->count, 1);
  EXPECT_TRUE(import_ok(of_events(kernel("k", 3, 1) + "," + huge.substr(0, 18 << 20))).partial);
}

TEST(ChromeLayouts, BoundsAreKeptAndSaid) {
  std::string events;
  for (int i = 0; i < 50; ++i)
    events += (i > 0 ? "," : "") + kernel(fmt::format("k{}", i % 10), 10 * i, i + 1);
  ImportOptions options;
  options.max_timeline_events = 20;
  Profile profile = import_ok(of_events(events), options);
  EXPECT_EQ(profile.timeline.activities.size(), 20u);
  EXPECT_EQ(profile.timeline.left_out, 30u);
  EXPECT_EQ(profile.kernels.size(), 10u);  // one row, whether in the timeline or not
  EXPECT_EQ(profile.coverage.launches_seen, 50);
  EXPECT_EQ(layout_note(profile, "timeline_full")->count, 30);

  options = {};
  options.max_kernel_rows = 4;
  profile = import_ok(of_events(events), options);
  ASSERT_EQ(profile.kernels.size(), 4u);
  EXPECT_EQ(profile.kernels[3].name, "(other kernels)");
  EXPECT_EQ(profile.kernels[3].duration.count(), 35);
  EXPECT_EQ(layout_note(profile, "kernel_rows_full")->count, 35);
}

// AMD's early traces: no arguments on kernels, the launch shape with the call, flows tie the two.
// Two launches of each kernel, 1 ns and a day: 3,200 buckets a row.
TEST(ChromeLayouts, DurationsSpreadBeyondReasonAreTogether) {
  std::string events;
  for (int i = 0; i < 200; ++i)
    for (const char* duration : {"0.001", "86400000000"})
      events += fmt::format(
          R"({}{{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":7,"ts":1,"dur":{}}})",
          events.empty() ? "" : ",", i, duration);
  for (const std::size_t timeline : {std::size_t{10}, std::size_t{1000}}) {
    ImportOptions options;
    options.max_sketch_buckets = 30'000;
    options.max_timeline_events = timeline;
    const Profile profile = import_ok(of_events(events), options);
    std::size_t buckets = 0;
    double launches = 0;
    for (const KernelRow& row : profile.kernels) {
      buckets += row.duration.buckets().size();
      launches += row.duration.count();
    }
    EXPECT_LT(buckets, 45'000u);
    EXPECT_EQ(launches, 400);
    EXPECT_NE(layout_note(profile, "kernel_rows_full"), nullptr);
  }
}

TEST(ChromeLayouts, AmdLaunchesSayTheirShapeWithTheCall) {
  const Profile profile = import_ok(of_events(
      host("cpu_op", "aten::add", 0, 50, R"("External id":9)") + "," +
          host("cuda_runtime", "hipLaunchKernel", 10, 2,
               R"("kernel":"k","cid":211,"correlation":77,"stream":"0x0","grid":[8,2,1],)"
               R"("block":[256,1,1],"shared memory":512)") +
          R"(,{"ph":"s","id":77,"pid":42,"tid":42,"ts":10,"cat":"ac2g","name":"ac2g"},)"
          R"({"ph":"X","cat":"kernel","name":"k","pid":2,"tid":0,"ts":30,"dur":4},)"
          R"({"ph":"f","id":77,"pid":2,"tid":0,"ts":30,"cat":"ac2g","name":"ac2g","bp":"e"},)"
          R"({"ph":"X","cat":"gpu_memcpy","name":"CopyHostToDevice","pid":2,"tid":0,"ts":40,)"
          R"("dur":4,"args":{"bytes":64}})",
      R"("deviceProperties":[{"id":2,"name":"AMD Instinct MI250X","computeMajor":9,)"
      R"("computeMinor":0,"warpSize":64,"numSms":110}],"hip_runtime_version":60241133,)"));
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(to_text(profile.kernels[0].launch), "8x2x1 / 256x1x1 shared 512");
  EXPECT_EQ(profile.kernels[0].op, "aten::add");
  EXPECT_EQ(profile.copies.at(0).kind, "h2d");
  const DeviceInfo& device = profile.environment.devices.at(0);
  EXPECT_EQ(device.vendor, "AMD");
  EXPECT_EQ(device.arch, "");
  EXPECT_EQ(device.toolkit, "HIP 6.2");
  EXPECT_EQ(profile.processes.at(0).layer, "hip");
}

// ROCm 6: one id under the name "External id", the size of what hipExt… launches in threads.
TEST(ChromeLayouts, AmdCallsAndKernelsShareAnExternalId) {
  const auto trace = [](std::string_view flow) {
    return of_events(
        host("cpu_op", "aten::mm", 0, 26,
             R"("External id":513,"Input Dims":[[256,64],[64,512]],)"
             R"("Input type":["c10::BFloat16","c10::BFloat16"])") +
        "," + host("cpu_op", "aten::other", 40, 9, R"("External id":25)") + "," +
        host("cuda_runtime", "hipExtModuleLaunchKernel", 16, 5,
             R"("External id":25,"shared size":0,"stream":"0x0","block dim":[256,1,1],)"
             R"("grid dim":[512,4,1],"Kernel":"Cijk_A")") +
        R"(,{"ph":"X","cat":"kernel","name":"Cijk_A","pid":2,"tid":0,"ts":60,"dur":1085,"args":{)"
        R"("External id":25}})" +
        std::string(flow));
  };
  for (const char* flow :
       {"", R"(,{"ph":"f","id":25,"pid":2,"tid":0,"ts":60,"cat":"ac2g","name":"ac2g","bp":"e"})"}) {
    const Profile profile = import_ok(trace(flow));
    ASSERT_EQ(profile.kernels.size(), 1u);
    EXPECT_EQ(profile.kernels[0].op, "aten::mm");
    EXPECT_EQ(profile.kernels[0].shape, "M=256,N=512,K=64");
    EXPECT_EQ(to_text(profile.kernels[0].launch), "2x4x1 / 256x1x1");
    EXPECT_EQ(profile.coverage.launches_lost, 0);
    EXPECT_EQ(profile.environment.devices.at(0).id, "hip:2");
  }
}

TEST(ChromeLayouts, CollectivesCarryTheirProblem) {
  const std::string collective =
      R"(,"Collective name":"allreduce","In msg nelems":1048576,"Out msg nelems":1048576,)"
      R"("Group size":8,"dtype":"BFloat16")";
  const Profile profile = import_ok(of_events(
      host("user_annotation", "nccl:all_reduce", 0, 90, "") + "," +
      host("cpu_op", "c10d::allreduce_", 5, 80, "") + "," +
      host("cpu_op", "record_param_comms", 8, 70, "") + "," +
      host("cuda_runtime", "cudaLaunchKernelExC", 10, 2, R"("correlation":4)") + "," +
      kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", 20, 4, collective)));
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(profile.kernels[0].op, "c10d::allreduce_");
  EXPECT_EQ(profile.kernels[0].shape, "in=1048576,out=1048576,ranks=8");
  EXPECT_EQ(profile.kernels[0].dtype, "bf16");
  EXPECT_EQ(profile.timeline.ranges.at(0).kind, RangeKind::kCommunication);
}

constexpr std::string_view kXlaTrace =
    R"x({"displayTimeUnit":"ns","metadata":{"highres-ticks":true},
"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:1"}},
{"ph":"M","pid":1,"tid":12,"name":"thread_name","args":{"name":"Stream #12(Compute)"}},
{"ph":"M","pid":1,"tid":90,"name":"thread_name","args":{"name":"XLA Ops"}},
{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"M","pid":701,"tid":5,"name":"thread_name","args":{"name":"python"}},
{"ph":"X","pid":701,"tid":5,"ts":0.5,"dur":90,"name":"train","args":{"step_num":"3"}},
{"ph":"X","pid":701,"tid":5,"ts":1,"dur":80,"name":"PjitFunction(f)"},
{"ph":"X","pid":701,"tid":5,"ts":2,"dur":3,"name":"$main.py:3 f"},
{"ph":"X","pid":701,"tid":5,"ts":5,"dur":2,"name":"cuLaunchKernel",
 "args":{"correlation_id":"8"}},
{"ph":"X","pid":1,"tid":12,"ts":10.25,"dur":2.5,"name":"loop_add_fusion",
 "args":{"correlation_id":"8","hlo_module":"jit_f","hlo_op":"add.1","kernel_details":
 "regs:24 static_shared:128 dynamic_shared:64 grid:10,2,1 block:256,1,1 occ_pct:100"}},
{"ph":"X","pid":1,"tid":90,"ts":10.25,"dur":2.5,"name":"loop_add_fusion",
 "args":{"hlo_op":"add.1"}},
{"ph":"X","pid":1,"tid":12,"ts":15,"dur":1,"name":"MemcpyH2D",
 "args":{"memcpy_details":"kind_src:host kind_dst:device size:4096 dest:0 async:1"}}]})x";

TEST(ChromeLayouts, ReadsXlaByItsTracks) {
  const Profile profile = import_ok(kXlaTrace);
  EXPECT_EQ(profile.source, "xla");
  ASSERT_EQ(profile.kernels.size(), 1u);
  const KernelRow& row = profile.kernels[0];
  EXPECT_EQ(row.op, "jit_f/add.1");
  EXPECT_EQ(to_text(row.launch), "10x2x1 / 256x1x1 shared 64");
  EXPECT_EQ(row.registers, 24u);
  EXPECT_EQ(row.static_shared_bytes, 128u);
  EXPECT_EQ(row.duration.total_ns(), 2500);
  EXPECT_EQ(profile.copies.at(0).kind, "h2d");
  EXPECT_EQ(profile.copies.at(0).bytes, 4096);
  const Timeline& timeline = profile.timeline;
  ASSERT_EQ(timeline.activities.size(), 2u);
  EXPECT_EQ(timeline.calls.at(timeline.activities[0].call).kind, CallKind::kLaunch);
  EXPECT_EQ(timeline.ranges.at(0).kind, RangeKind::kStep);
  EXPECT_EQ(timeline.ops.size(), 1u);
  EXPECT_EQ(profile.environment.devices.at(0).id, "device:1");
  EXPECT_NE(layout_note(profile, "python_frames"), nullptr);
}

TEST(ChromeLayouts, OtherTracesNeedWorkOfAGpu) {
  const std::string cpu_only = of_events(R"({"ph":"X","name":"f","pid":1,"tid":1,"ts":1,"dur":1})");
  const Status status = import_layout(cpu_only).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("none of which is work of a GPU"), std::string::npos);
  const Profile profile =
      import_ok(of_events(R"({"ph":"M","pid":2,"name":"process_name","args":{"name":"GPU0"}},)"
                          R"({"ph":"X","name":"f","pid":2,"tid":1,"ts":1,"dur":1})"));
  EXPECT_EQ(profile.source, "chrome");
  EXPECT_EQ(profile.kernels.size(), 1u);
}

TEST(ChromeLayouts, WhatIsNoTraceIsSaidSo) {
  for (const char* text : {"", "   ", "hello", "{}", "[]x", R"({"a":1})", "[1]", R"([{"ph"])",
                           R"({"traceEvents":7})", "\x1f\x8b", "{\"traceEvents\":["}) {
    const Result<Profile> profile = import_layout(text);
    ASSERT_FALSE(profile.is_ok()) << text;
    EXPECT_TRUE(profile.status().message().find("trace") != std::string::npos) << text;
  }
}

TEST(LooksLikeChromeTrace, TellsTheToolsApart) {
  EXPECT_EQ(looks_like_chrome_trace("\n {\n \"schemaVersion\": 1,\n \"deviceProperties\": ["),
            Format::kKineto);
  EXPECT_EQ(looks_like_chrome_trace(R"([{"ph": "X", "cat": "Operator", "name")"), Format::kKineto);
  EXPECT_EQ(looks_like_chrome_trace(kXlaTrace.substr(0, 70)), Format::kXla);
  EXPECT_EQ(looks_like_chrome_trace(R"({"traceEvents":[)"), Format::kChrome);
  EXPECT_EQ(looks_like_chrome_trace(R"({"schema":"purlin.report/1"})"), std::nullopt);
  EXPECT_EQ(looks_like_chrome_trace("\"ID\",\"Process ID\""), std::nullopt);
  EXPECT_EQ(looks_like_chrome_trace(""), std::nullopt);
}

}  // namespace
}  // namespace purlin::profile
