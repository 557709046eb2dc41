// SPDX-License-Identifier: Apache-2.0
// Whole traces: extracts of real ones, whose figures were computed by a Python program that joins
// by PyTorch's "External id" and not by the clock.
#include "profile/import/chrome/trace.h"

#include "base/files.h"
#include "base/gzip.h"
#include "base/random.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::profile {
namespace {

std::string data(const std::string& name) {
  return std::string(PURLIN_SOURCE_DIR) + "/tests/data/traces/" + name;
}

Profile import_file(const std::string& name) {
  Result<Profile> profile = import_chrome_trace(data(name), {});
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return profile.is_ok() ? std::move(profile).value() : Profile{};
}

Result<Profile> import_text(std::string_view text, const ImportOptions& options = {}) {
  return import_chrome_trace(Input::from_bytes(text), "trace", options);
}

double kernel_ns(const Profile& profile) {
  double total = 0;
  for (const KernelRow& row : profile.kernels) total += row.duration.total_ns();
  return total;
}

const KernelRow* find_row(const Profile& profile, std::string_view op, std::string_view shape) {
  const auto at =
      std::find_if(profile.kernels.begin(), profile.kernels.end(),
                   [&](const KernelRow& row) { return row.op == op && row.shape == shape; });
  return at == profile.kernels.end() ? nullptr : &*at;
}

const CoverageNote* trace_note(const Profile& profile, std::string_view cause) {
  for (const CoverageNote& note : profile.coverage.notes)
    if (note.cause == cause) return &note;
  return nullptr;
}

double trace_counter(const KernelRow& row, std::string_view name) {
  for (const Counter& counter : row.counters)
    if (counter.name == name) return counter.value;
  return -1;
}

void expect_indices_in_range(const Profile& profile) {
  const Timeline& timeline = profile.timeline;
  for (const Activity& a : timeline.activities) {
    ASSERT_LT(a.row,
              a.kind == ActivityKind::kKernel ? profile.kernels.size() : profile.copies.size());
    ASSERT_LT(a.device, profile.environment.devices.size());
    ASSERT_LT(a.process, profile.processes.size());
    ASSERT_TRUE(a.call == kNone || a.call < timeline.calls.size());
    ASSERT_GE(a.duration_ns, 0);
  }
  for (const Call& call : timeline.calls) {
    ASSERT_TRUE(call.op == kNone || call.op < timeline.ops.size());
    ASSERT_LT(call.process, profile.processes.size());
    ASSERT_LT(call.name, timeline.names.size());
  }
  for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
    const Op& op = timeline.ops[i];
    ASSERT_TRUE(op.parent == kNone || op.parent < i);
    ASSERT_LT(op.process, profile.processes.size());
    ASSERT_LT(std::max({op.name, op.shape, op.dtype}), timeline.names.size());
  }
  for (const Range& range : timeline.ranges) {
    ASSERT_LT(range.process, profile.processes.size());
    ASSERT_LT(range.name, timeline.names.size());
  }
}

TEST(ChromeTrace, ReadsTheTransformerOnAnH200) {
  const Profile profile = import_file("kineto_h200_transformer.json.gz");
  EXPECT_EQ(profile.source, "kineto");
  EXPECT_FALSE(profile.partial);
  EXPECT_TRUE(profile.coverage.notes.empty());
  EXPECT_EQ(profile.coverage.launches_seen, 20);
  EXPECT_EQ(profile.coverage.launches_counted, 20);
  EXPECT_EQ(kernel_ns(profile), 297441);
  expect_indices_in_range(profile);

  struct Product {
    const char *op, *shape;
    double ns;
  };
  for (const Product& product : {Product{"aten::mm", "M=4096,N=3072,K=1024", 37120},
                                 Product{"aten::addmm", "M=4096,N=1024,K=1024", 14880},
                                 Product{"aten::addmm", "M=4096,N=4096,K=1024", 48832}}) {
    const KernelRow* row = find_row(profile, product.op, product.shape);
    ASSERT_NE(row, nullptr) << product.shape;
    EXPECT_EQ(row->dtype, "bf16");
    EXPECT_EQ(row->duration.total_ns(), product.ns);
  }
  const KernelRow& product = *find_row(profile, "aten::mm", "M=4096,N=3072,K=1024");
  EXPECT_EQ(product.name, "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT");
  EXPECT_EQ(to_text(product.launch), "2x66x1 / 384x1x1 shared 213188");
  EXPECT_EQ(product.registers, 168u);
  EXPECT_EQ(trace_counter(product, "kineto.warps_per_sm"), 12);
  EXPECT_EQ(trace_counter(product, "kineto.est_achieved_occupancy_pct"), 0);

  ASSERT_EQ(profile.copies.size(), 1u);
  EXPECT_EQ(profile.copies[0].kind, "memset");
  EXPECT_EQ(profile.copies[0].bytes, 12);

  const Timeline& timeline = profile.timeline;
  EXPECT_EQ(timeline.activities.size(), 23u);
  EXPECT_EQ(timeline.calls.size(), 26u);
  EXPECT_EQ(timeline.ops.size(), 137u);
  for (const Activity& activity : timeline.activities) {
    ASSERT_NE(activity.call, kNone);
    EXPECT_EQ(activity.stream, 7u);
    EXPECT_LE(timeline.calls[activity.call].start_ns, activity.start_ns);
    EXPECT_NE(timeline.calls[activity.call].op, kNone);
  }
  ASSERT_EQ(timeline.ranges.size(), 1u);
  EXPECT_EQ(timeline.ranges[0].kind, RangeKind::kStep);
  EXPECT_EQ(timeline.names[timeline.ranges[0].name], "ProfilerStep#1");
  // baseTimeNanoseconds + ts, to the nanosecond.
  EXPECT_EQ(timeline.begin_ns, 1790857026000000000 + 4320336255046323);

  ASSERT_EQ(profile.environment.devices.size(), 1u);
  const DeviceInfo& device = profile.environment.devices[0];
  EXPECT_EQ(device.name, "NVIDIA H200");
  EXPECT_EQ(device.arch, "sm_90");
  EXPECT_EQ(device.compute_units, 132);
  EXPECT_EQ(device.memory_bytes, 150109880320u);
  EXPECT_EQ(device.shared_memory_per_block, 232448);
  EXPECT_EQ(device.toolkit, "CUDA 13.0");
  EXPECT_EQ(profile.environment.recorded_at, "2026-11-20T12:22:42Z");
  ASSERT_EQ(profile.processes.size(), 1u);
  EXPECT_EQ(profile.processes[0].pid, 1469);
  EXPECT_EQ(profile.processes[0].command, "python3");
}

// PyTorch 1.8: a bare array, times in whole microseconds, ids as text, steps among the ops.
TEST(ChromeTrace, ReadsTheFirstKinetoLayout) {
  const Profile profile = import_file("kineto_v100_resnet50.json");
  EXPECT_EQ(profile.source, "kineto");
  EXPECT_EQ(kernel_ns(profile), 1478000);
  expect_indices_in_range(profile);
  const KernelRow* row =
      find_row(profile, "aten::cudnn_convolution", "N=32,C=256,H=56,W=56,K=64,R=1,S=1");
  ASSERT_NE(row, nullptr);
  const Timeline& timeline = profile.timeline;
  ASSERT_EQ(timeline.ranges.size(), 2u);
  EXPECT_EQ(timeline.ranges[0].kind, RangeKind::kStep);
  EXPECT_EQ(timeline.ranges[1].kind, RangeKind::kDataLoader);
  EXPECT_EQ(timeline.ranges[0].thread, 4093687616u);
  EXPECT_EQ(timeline.activities[0].stream, 7u);
  EXPECT_EQ(profile.environment.recorded_at, "2020-12-02T12:03:16Z");
}

TEST(ChromeTrace, ReadsCountersOfReplayedKernelsWithoutInventingDurations) {
  const Profile profile = import_file("kineto_a100_alexnet_counters.json.gz");
  EXPECT_NE(trace_note(profile, "durations_unknown"), nullptr);
  EXPECT_NE(trace_note(profile, "no_shapes"), nullptr);
  EXPECT_EQ(kernel_ns(profile), 0);
  EXPECT_EQ(profile.environment.devices.size(), 8u);
  EXPECT_EQ(profile.processes.at(0).rank, 0);
  const auto conv1 = std::find_if(profile.kernels.begin(), profile.kernels.end(),
                                  [](const KernelRow& row) { return row.name == "__missing__"; });
  ASSERT_NE(conv1, profile.kernels.end());
  EXPECT_EQ(conv1->op, "aten::cudnn_convolution");  // the second launch, as the second range
  EXPECT_TRUE(conv1->duration.empty());
  const std::string op = "smsp__sass_thread_inst_executed_op_";
  EXPECT_EQ(2 * trace_counter(*conv1, op + "ffma_pred_on.sum") +
                trace_counter(*conv1, op + "fmul_pred_on.sum") +
                trace_counter(*conv1, op + "fadd_pred_on.sum"),
            18263449600.0);
  double launches = 0;
  for (const KernelRow& row : profile.kernels) launches += row.counters.at(0).launches;
  EXPECT_EQ(launches, 77);
}

TEST(ChromeTrace, SaysThatKernelsOfGraphsHaveNoOp) {
  const Profile profile = import_file("kineto_h200_graph.json.gz");
  EXPECT_EQ(profile.coverage.launches_seen, 73);
  EXPECT_EQ(kernel_ns(profile), 303351);
  const CoverageNote* note = trace_note(profile, "graph_kernels_without_op");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->count, 73);
  const Timeline& timeline = profile.timeline;
  for (const Activity& activity : timeline.activities)
    EXPECT_EQ(timeline.calls.at(activity.call).kind, CallKind::kGraphLaunch);
  const auto overhead = std::find_if(timeline.ranges.begin(), timeline.ranges.end(),
                                     [](const Range& r) { return r.kind == RangeKind::kProfiler; });
  ASSERT_NE(overhead, timeline.ranges.end());
  EXPECT_EQ(overhead->process, 0u);
}

// Two processes that were merged into one trace: their launches have the same ids.
TEST(ChromeTrace, EqualIdsOfMergedProcesses) {
  std::string text = R"({"traceEvents":[)";
  for (int launch = 0; launch < 4; ++launch)
    for (int rank = 0; rank < 2; ++rank)
      text += fmt::format(
          R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{0},"tid":{0},"ts":{1},"dur":5,)"
          R"("args":{{"correlation":{2}}}}},)"
          R"({{"ph":"X","cat":"kernel","name":"k{3}","pid":{3},"tid":7,"ts":{4},"dur":20,)"
          R"("args":{{"device":{3},"stream":7,"correlation":{2}}}}},)",
          100 + rank, 1000 + 100 * launch + rank, launch + 1, rank, 1020 + 100 * launch);
  text.back() = ']';
  const Result<Profile> profile = import_text(text + "}");
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  std::vector<int> works(profile->timeline.calls.size(), 0);
  for (const Activity& activity : profile->timeline.activities) ++works.at(activity.call);
  EXPECT_EQ(works, std::vector<int>(8, 1));
  EXPECT_EQ(profile->coverage.launches_lost, 0);
}

TEST(ChromeTrace, ReadsAPrefixOfACutFileAndSaysUpToWhere) {
  const std::string text =
      gunzip(read_file(data("kineto_h200_transformer.json.gz")).value(), 1 << 20).value();
  double seen = 0;
  for (std::size_t size = 1; size < text.size(); size += 997) {
    const Result<Profile> profile = import_text(std::string_view(text).substr(0, size));
    if (!profile.is_ok()) {
      EXPECT_EQ(profile.status().code(), Code::kCorrupt);
      EXPECT_NE(profile.status().message().find("byte"), std::string::npos);
      EXPECT_EQ(seen, 0);
      continue;
    }
    EXPECT_TRUE(profile->partial) << size;
    const CoverageNote* note = trace_note(*profile, "damaged");
    ASSERT_NE(note, nullptr);
    EXPECT_NE(note->text.find(fmt::format("byte {}", size)), std::string::npos) << note->text;
    EXPECT_GE(profile->coverage.launches_seen, seen);
    seen = profile->coverage.launches_seen;
    expect_indices_in_range(*profile);
  }
  EXPECT_EQ(seen, 20);
}

TEST(ChromeTrace, TakesAnyDamage) {
  const std::string text =
      gunzip(read_file(data("kineto_h200_transformer.json.gz")).value(), 1 << 20).value();
  Random random(3);
  constexpr std::string_view kPieces[] = {"\"", "{", "}", "]", "\\", ",", "\xff", "-", "e", "0"};
  for (int round = 0; round < 200; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 5; ++i)
      damaged.replace(random.below(damaged.size()), random.below(9),
                      kPieces[random.below(std::size(kPieces))]);
    const Result<Profile> profile = import_text(damaged);
    if (profile.is_ok()) expect_indices_in_range(*profile);
  }
}

TEST(ChromeTrace, ReadsAPrefixOfDamagedGzip) {
  std::string bytes = read_file(data("kineto_h200_transformer.json.gz")).value();
  bytes.replace(bytes.size() * 3 / 4, 32, std::string(32, '\x55'));
  const Result<Profile> profile = import_text(bytes);
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  EXPECT_TRUE(profile->partial);
  EXPECT_GT(profile->timeline.ops.size(), 0u);
}

}  // namespace
}  // namespace purlin::profile
