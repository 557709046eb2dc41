// SPDX-License-Identifier: Apache-2.0
#include "profile/torch/trace_merge.h"

#include "base/files.h"
#include "profile/format/file.h"
#include "profile/import/import.h"
#include "profile/torch/note.h"
#include "profile/torch/torch_traces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

namespace purlin::profile {
namespace {

constexpr const char* kMangled = "_Z5saxpyifPKfPf";
constexpr const char* kReadable = "saxpy(int, float, float const*, float*)";

KernelRow launched_row(const std::string& name, std::uint32_t grid, double ns, double launches) {
  KernelRow row;
  row.name = name;
  row.launch.grid = {grid, 1, 1};
  row.launch.block = {128, 1, 1};
  row.duration.add(ns, launches);
  return row;
}

KernelRow traced_row(const std::string& name, std::uint32_t grid, double ns, double launches,
                     const std::string& op, const std::string& shape) {
  KernelRow row = launched_row(name, grid, ns, launches);
  row.op = op;
  row.shape = shape;
  row.dtype = op.empty() ? "" : "bf16";
  return row;
}

// A run of one process on one device, as a capture without --full leaves it.
Profile captured_run() {
  Profile run;
  run.source = "purlin";
  run.environment.devices.resize(1);
  run.environment.devices[0].id = "cuda:0";
  run.environment.devices[0].uuid = "GPU-1";
  run.processes.resize(2);
  run.processes[0].pid = 10;
  run.processes[1].pid = 11;
  run.processes[1].layer = "cuda";
  return run;
}

Profile kineto_trace() {
  Profile trace;
  trace.source = "kineto";
  trace.environment.devices.resize(1);
  trace.environment.devices[0].id = "cuda:0";
  trace.processes.resize(1);
  trace.processes[0].pid = 11;
  return trace;
}

void add_launch(Profile& trace, std::uint32_t row, std::int64_t start_ns) {
  Timeline& timeline = trace.timeline;
  if (timeline.names.size() == 1) timeline.names.emplace_back("aten::mm");
  Op op;
  op.start_ns = start_ns;
  op.duration_ns = 50;
  op.name = 1;
  timeline.ops.push_back(op);
  Call call;
  call.start_ns = start_ns + 10;
  call.duration_ns = 5;
  call.kind = CallKind::kLaunch;
  call.op = static_cast<std::uint32_t>(timeline.ops.size() - 1);
  timeline.calls.push_back(call);
  Activity activity;
  activity.start_ns = start_ns + 100;
  activity.duration_ns = 500;
  activity.row = row;
  activity.call = static_cast<std::uint32_t>(timeline.calls.size() - 1);
  timeline.activities.push_back(activity);
}

const KernelRow* row_of_shape(const Profile& profile, std::string_view shape) {
  const auto at = std::find_if(profile.kernels.begin(), profile.kernels.end(),
                               [&](const KernelRow& row) { return row.shape == shape; });
  return at == profile.kernels.end() ? nullptr : &*at;
}

double run_total_ns(const Profile& profile) {
  double total = 0;
  for (const KernelRow& row : profile.kernels) total += row.duration.total_ns();
  return total;
}

double total_launches(const Profile& profile) {
  double launches = 0;
  for (const KernelRow& row : profile.kernels) launches += row.duration.count();
  return launches;
}

TEST(TraceMerge, ARowTakesTheOpThatLaunchesItsKernel) {
  Profile run = captured_run();
  run.kernels = {launched_row(kMangled, 64, 1000, 500), launched_row("other", 64, 100, 7)};
  Profile trace = kineto_trace();
  trace.kernels = {traced_row(kReadable, 64, 1100, 10, "aten::mm", "M=1,N=2,K=3"),
                   traced_row(kReadable, 32, 1100, 10, "aten::mm", "M=9,N=9,K=9")};
  trace.kernels[0].counters = {{"kineto.blocks_per_sm", 4, 10}};
  const TraceMerge merge = merge_trace(run, trace, 11);
  const KernelRow* row = row_of_shape(run, "M=1,N=2,K=3");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->name, kMangled);
  EXPECT_EQ(row->op, "aten::mm");
  EXPECT_EQ(row->dtype, "bf16");
  EXPECT_EQ(row->duration.count(), 500);
  EXPECT_EQ(row->duration.total_ns(), 500'000);
  ASSERT_EQ(row->counters.size(), 1u);
  EXPECT_EQ(merge.launches, 20);
  EXPECT_EQ(merge.split_launches, 0);
  // The other grid is of the trace alone.
  EXPECT_EQ(merge.added_kernels, 1u);
  EXPECT_EQ(merge.added_launches, 10);
  EXPECT_EQ(run.coverage.launches_seen, 10);
  EXPECT_EQ(run.kernels[1].op, "");
}

TEST(TraceMerge, SeveralOpsShareARowInTheProportionOfTheTrace) {
  Profile run = captured_run();
  run.kernels = {launched_row(kMangled, 64, 2000, 900)};
  Profile trace = kineto_trace();
  trace.kernels = {traced_row(kReadable, 64, 1000, 20, "aten::mm", "K=1"),
                   traced_row(kReadable, 64, 4000, 10, "aten::mm", "K=4")};
  const TraceMerge merge = merge_trace(run, trace, 11);
  EXPECT_EQ(run.kernels.size(), 2u);
  EXPECT_NEAR(run_total_ns(run), 1'800'000, 1e-3);
  EXPECT_NEAR(total_launches(run), 900, 1e-9);
  EXPECT_EQ(merge.split_launches, 900);
  const KernelRow *small = row_of_shape(run, "K=1"), *large = row_of_shape(run, "K=4");
  ASSERT_NE(small, nullptr);
  ASSERT_NE(large, nullptr);
  EXPECT_NEAR(small->duration.count(), 600, 1e-9);
  EXPECT_NEAR(large->duration.count(), 300, 1e-9);
  EXPECT_NEAR(large->duration.mean_ns(), 4 * small->duration.mean_ns(), 1e-6);
}

TEST(TraceMerge, RowsWithAnOpAndNodesOfGraphsKeepWhatTheyHave) {
  Profile run = captured_run();
  run.kernels = {launched_row(kMangled, 64, 1000, 5), launched_row(kMangled, 64, 1000, 5)};
  run.kernels[0].op = "my range";
  run.kernels[1].origin = LaunchOrigin::kGraph;
  Profile trace = kineto_trace();
  trace.kernels = {traced_row(kReadable, 64, 1000, 20, "aten::mm", "K=1")};
  add_launch(trace, 0, 1000);
  const TraceMerge merge = merge_trace(run, trace, 11);
  EXPECT_EQ(run.kernels.size(), 2u);
  EXPECT_EQ(run.kernels[0].op, "my range");
  EXPECT_EQ(run.kernels[1].op, "");
  EXPECT_EQ(merge.added_kernels, 0u);
  EXPECT_EQ(merge.with_op_ns, 5000);
  EXPECT_EQ(run.timeline.activities.size(), 1u);
}

TEST(TraceMerge, SharedMemoryTellsRowsApartWhereItMatches) {
  Profile run = captured_run();
  run.kernels = {launched_row(kMangled, 64, 1000, 5), launched_row(kMangled, 64, 1000, 5)};
  run.kernels[1].launch.dynamic_shared_bytes = 1000;
  run.kernels[1].static_shared_bytes = 24;
  Profile trace = kineto_trace();
  trace.kernels = {traced_row(kReadable, 64, 1000, 20, "aten::mm", "K=1"),
                   traced_row(kReadable, 64, 1000, 20, "aten::mm", "K=2")};
  trace.kernels[1].launch.dynamic_shared_bytes = 1024;
  merge_trace(run, trace, 11);
  ASSERT_EQ(run.kernels.size(), 2u);
  EXPECT_EQ(run.kernels[0].shape, "K=1");
  EXPECT_EQ(run.kernels[1].shape, "K=2");
}

TEST(TraceMerge, TheTimelineIsTheTracesAndPointsAtTheRunsRows) {
  Profile run = captured_run();
  run.kernels = {launched_row("other", 1, 10, 1), launched_row(kMangled, 64, 1000, 500)};
  run.copies.resize(1);
  run.copies[0].kind = "h2d";
  run.copies[0].bytes = 77;
  Profile trace = kineto_trace();
  trace.environment.devices[0].id = "cuda:3";  // a device that the run did not see
  trace.kernels = {traced_row(kReadable, 64, 1100, 2, "aten::mm", "K=1")};
  trace.copies.resize(1);
  trace.copies[0].kind = "d2h";
  trace.copies[0].bytes = 5;
  add_launch(trace, 0, 1'000'000);
  add_launch(trace, 0, 2'000'000);
  sort_timeline(trace.timeline);
  merge_trace(run, trace, 11);
  const Timeline& timeline = run.timeline;
  ASSERT_EQ(timeline.activities.size(), 2u);
  EXPECT_EQ(run.environment.devices.size(), 2u);
  for (const Activity& activity : timeline.activities) {
    EXPECT_EQ(run.kernels[activity.row].op, "aten::mm");
    EXPECT_EQ(activity.process, 1u);
    EXPECT_EQ(activity.device, 1u);
    ASSERT_LT(activity.call, timeline.calls.size());
    const Call& call = timeline.calls[activity.call];
    ASSERT_LT(call.op, timeline.ops.size());
    EXPECT_EQ(timeline.names[timeline.ops[call.op].name], "aten::mm");
  }
  EXPECT_EQ(run.processes.size(), 2u);
  ASSERT_EQ(run.copies.size(), 2u);
  EXPECT_EQ(run.copies[0].bytes, 77);
  // It is a profile like any other.
  EXPECT_TRUE(decode_profile(encode_profile(run)).is_ok());
}

TEST(TraceMerge, ATraceOfAProcessWithoutCaptureIsTheProfile) {
  Profile run;
  Profile trace = kineto_trace();
  trace.kernels = {traced_row(kReadable, 64, 1100, 2, "aten::mm", "K=1")};
  add_launch(trace, 0, 1'000'000);
  const TraceMerge merge = merge_trace(run, trace, 12);
  ASSERT_EQ(run.processes.size(), 1u);
  EXPECT_EQ(run.processes[0].pid, 12);
  EXPECT_EQ(run.environment.devices.size(), 1u);
  EXPECT_EQ(merge.with_op_ns, merge.total_ns);
  EXPECT_EQ(merge.added_launches, 2);
}

// The rows of a real trace without their ops, as Purlin's capture would have them for 100 times as
// many launches: the merge gives every launch its op back.
TEST(TraceMerge, ARealTraceGivesItsOwnKernelsTheirOpsBack) {
  for (const char* name : {"kineto_h200_transformer", "kineto_h200_decode_before"}) {
    const Result<Profile> trace = import_chrome_trace(
        std::string(PURLIN_SOURCE_DIR) + "/tests/data/traces/" + name + ".json.gz", {});
    ASSERT_TRUE(trace.is_ok()) << trace.status().message();
    Profile bare;
    bare.environment = trace->environment;
    for (KernelRow row : trace->kernels) {
      row.op = row.shape = row.dtype = "";
      row.counters.clear();
      row.duration = row.duration.scaled(1, 100);
      bare.kernels.push_back(row);
    }
    Profile run;
    merge_into(run, bare);  // rows that differed by op alone are one
    const std::size_t rows = run.kernels.size();
    const double launches = total_launches(run), total = run_total_ns(run);
    const TraceMerge merge = merge_trace(run, *trace, 1469);
    EXPECT_LE(rows, run.kernels.size()) << name;
    EXPECT_EQ(merge.added_kernels, 0u) << name;
    EXPECT_NEAR(total_launches(run), launches, launches * 1e-9) << name;
    EXPECT_NEAR(run_total_ns(run), total, total * 1e-9) << name;
    EXPECT_EQ(run.timeline.activities.size(), trace->timeline.activities.size()) << name;
    std::map<std::string, double> expected, found;
    for (const KernelRow& row : trace->kernels)
      expected[row.op + row.shape] += 100 * row.duration.total_ns();
    for (const KernelRow& row : run.kernels) found[row.op + row.shape] += row.duration.total_ns();
    ASSERT_EQ(expected.size(), found.size()) << name;
    for (const auto& [op, ns] : expected) EXPECT_NEAR(found[op], ns, ns * 0.01) << op;
  }
}

// The trace leaves CUPTI, so that nothing slows the program down after it.
TEST(TorchTraces, RecordingThatEndedWithTheTraceIsNotAnotherClientsDoing) {
  const std::string spool = make_temporary_directory("purlin-torch-test").value();
  const std::string trace =
      std::string(PURLIN_SOURCE_DIR) + "/tests/data/traces/kineto_h200_transformer.json.gz";
  ASSERT_TRUE(write_atomic(join_path(spool, "t.json.gz"), *read_file(trace)).is_ok());
  for (const bool keeps : {true, false}) {
    const std::string note = R"({"schema":"purlin.torch/1","pid":11,"number":1,"mode":"steps",)"
                             R"("trace":"t.json.gz","keeps_cupti":)" +
                             std::string(keeps ? "true}" : "false}");
    ASSERT_TRUE(write_atomic(join_path(spool, "torch-11-1.note"), note).is_ok());
    Profile run = captured_run();
    run.coverage.notes.push_back({"cupti_finalized", "another client", 0, 0});
    add_torch_traces(run, spool, {});
    EXPECT_EQ(run.coverage.notes.front().cause, keeps ? "cupti_finalized" : "torch_end");
  }
  std::filesystem::remove_all(spool);
}

TEST(TorchTraces, TheNotesExecutionTraceGivesTheDataFlow) {
  const std::string spool = make_temporary_directory("purlin-torch-test").value();
  const std::string data = std::string(PURLIN_SOURCE_DIR) + "/tests/data/";
  const std::string flow = *read_file(data + "imports/attention_training.et.json.gz");
  ASSERT_TRUE(write_atomic(join_path(spool, "t.json.gz"),
                           *read_file(data + "traces/kineto_h200_transformer.json.gz"))
                  .is_ok());
  ASSERT_TRUE(write_atomic(join_path(spool, "torch-11-1.note"),
                           R"({"schema":"purlin.torch/1","pid":11,"number":1,"mode":"steps",)"
                           R"("trace":"t.json.gz","flow":"f.json.gz"})")
                  .is_ok());
  for (const bool whole : {true, false}) {
    ASSERT_TRUE(write_atomic(join_path(spool, "f.json.gz"),
                             flow.substr(0, whole ? flow.size() : flow.size() / 2))
                    .is_ok());
    Profile run = captured_run();
    add_torch_traces(run, spool, {});
    EXPECT_FALSE(run.timeline.empty());  // the trace is whole in both cases
    EXPECT_EQ(run.data_flow.recorded(), whole);
    const auto& notes = run.coverage.notes;
    EXPECT_EQ(
        std::any_of(notes.begin(), notes.end(),
                    [](const CoverageNote& note) { return note.cause == "data_flow_unknown"; }),
        !whole);
  }
  std::filesystem::remove_all(spool);
}

TEST(TorchNotes, AreReadLenientlyAndDamagedOnesAreNone) {
  const std::string good =
      R"({"schema":"purlin.torch/1","pid":7,"number":2,"mode":"steps","reason":"","steps":10,)"
      R"("start_ns":5,"end_ns":9,"cost_ns":1e6,"trace":"torch-7-2.json.gz","cuda":true})";
  const Result<TorchNote> note = parse_torch_note(good);
  ASSERT_TRUE(note.is_ok()) << note.status().message();
  EXPECT_EQ(note->pid, 7);
  EXPECT_EQ(note->number, 2);
  EXPECT_EQ(note->steps, 10);
  EXPECT_EQ(note->cost_ns, 1e6);
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(parse_torch_note(good.substr(0, cut)).is_ok()) << cut;
  for (const char* bad :
       {R"({"schema":"purlin.torch/2","pid":7})", R"({"schema":"purlin.torch/1","pid":0})",
        R"({"schema":"purlin.torch/1","pid":7,"trace":"../x.json"})",
        R"({"schema":"purlin.torch/1","pid":7,"flow":"a/x.json"})", R"({"pid":7})"})
    EXPECT_FALSE(parse_torch_note(bad).is_ok()) << bad;
}

TEST(TorchVariables, TheFolderIsFirstAndOnce) {
  ::unsetenv("PYTHONPATH");
  TorchOptions options;
  EXPECT_EQ(torch_variables(options, "/hook").count("PYTHONPATH"), 0u);
  EXPECT_EQ(torch_variables(options, "/hook")["PURLIN_TORCH"], "off");
  options.on = true;
  EXPECT_EQ(torch_variables(options, "/hook")["PYTHONPATH"], "/hook");
  EXPECT_EQ(torch_variables(options, "")["PURLIN_TORCH"], "off");
  ::setenv("PYTHONPATH", "/own:/more", 1);
  EXPECT_EQ(torch_variables(options, "/hook")["PYTHONPATH"], "/hook:/own:/more");
  ::setenv("PYTHONPATH", "/hook:/own", 1);
  EXPECT_EQ(torch_variables(options, "/hook")["PYTHONPATH"], "/hook:/own");
  ::unsetenv("PYTHONPATH");
  options.on_request = true;
  EXPECT_EQ(torch_variables(options, "/hook")["PURLIN_TORCH"], "idle");
}

}  // namespace
}  // namespace purlin::profile
