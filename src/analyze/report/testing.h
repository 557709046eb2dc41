// SPDX-License-Identifier: Apache-2.0
// Reports for the tests of the renderers: one from sketches alone, one with everything.
// The figures of the second are consistent with one another, but nothing measured them.
#pragma once

#include "analyze/report/report.h"

namespace purlin::analyze {

inline KernelRow row_of(const char* name, std::uint32_t blocks, int device, double ns, int count) {
  KernelRow row;
  row.name = name;
  row.launch.grid = {blocks, 1, 1};
  row.launch.block = {256, 1, 1};
  row.registers = blocks;
  row.device = device;
  for (int i = 0; i < count; ++i) row.duration.add(ns + i);
  return row;
}

// What `purlin profile` leaves behind without a timeline and without counters.
inline Profile sketches_only() {
  Profile profile;
  DeviceInfo gpu;
  gpu.id = "cuda:0";
  gpu.name = "NVIDIA H200";
  gpu.arch = "sm_90";
  gpu.compute_units = 132;
  gpu.driver = "580.159.04";
  profile.environment.devices = {gpu, gpu};
  profile.environment.devices[1].id = "cuda:1";
  profile.environment.host_os = "Debian GNU/Linux 12 (bookworm)";
  profile.environment.build = "abc123";
  profile.environment.recorded_at = "2026-11-20T12:00:00Z";
  profile.command = "python3 train.py --epochs 1";
  profile.wall_ns = 2'500'000'000;
  profile.kernels = {row_of("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 64, 0, 500'000, 100),
                     row_of("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 128, 0, 900'000, 100),
                     row_of("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 64, 1, 500'000, 50),
                     row_of("void wgrad_engine<float, 128>(float*)", 8, 0, 40'000, 20),
                     row_of("void wgrad_engine<float, 512>(float*)", 8, 0, 30'000, 20),
                     row_of("_Z5saxpyifPKfPf", 1024, 0, 2'000, 1000)};
  profile.kernels[3].shape = "N=32,C=64";
  CopyRow copy;
  copy.kind = "h2d";
  copy.bytes = 64.0 * (1 << 20);
  for (int i = 0; i < 4; ++i) copy.duration.add(1'000'000);
  profile.copies = {copy};
  ProcessInfo process;
  process.pid = 4242;
  process.command = profile.command;
  process.layer = "cuda";
  process.complete = true;
  profile.processes = {process, process};
  profile.processes[1].pid = 4243;
  profile.processes[1].complete = false;
  profile.coverage.launches_seen = 1290;
  profile.coverage.launches_counted = 1300;
  profile.coverage.launches_lost = 10;
  profile.coverage.overhead_ns = 1'250'000;
  profile.coverage.bytes_written = 20'480;
  profile.coverage.notes = {{"records_dropped",
                             "the driver dropped records because its buffers were full; "
                             "profile with a longer seal period or fewer launches at a time",
                             10, 0}};
  return profile;
}

// As `purlin profile --stalls` leaves them: a line of two instructions, an instruction without a
// line, samples that lost their place, and a function that kernels call.
inline void add_sampled_stalls(Profile& profile) {
  SampledStalls& stalls = profile.stalls;
  stalls.windows = 12;
  stalls.sampled_ns = 600'000'000;
  stalls.least_period = stalls.most_period = 4096;
  stalls.dropped = 20;
  stalls.files = {"", "/src/saxpy.cu"};
  stalls.reasons = {"long_scoreboard", "barrier", "selected"};
  const auto site = [](std::uint64_t offset, std::uint32_t line, std::vector<StallCount> counts) {
    StallSite out;
    out.offset = offset;
    out.file = line > 0 ? 1 : 0;
    out.line = line;
    out.counts = std::move(counts);
    return out;
  };
  StallFunction saxpy;
  saxpy.name = "_Z5saxpyifPKfPf";
  saxpy.build = profile.environment.build;
  saxpy.code = 7;
  saxpy.sites = {site(0x140, 14, {{0, 100}, {2, 50}}), site(0x150, 14, {{0, 650}}),
                 site(0x200, 0, {{1, 190}}), site(StallSite::kNowhere, 0, {{0, 10}})};
  StallFunction helper = saxpy;
  helper.name = "_Z6helperf";
  helper.sites = {site(0x10, 3, {{0, 50}})};
  helper.sites[0].line = 3;
  stalls.functions = {saxpy, helper};
}

inline Roof roof_of(double flops, double bytes, Provenance from, double mean_ns, Bound bound,
                    double utilization, const char* ceiling, const char* evidence) {
  Roof roof;
  roof.flops = roof.model_flops = flops;
  roof.bytes = roof.model_bytes = bytes;
  roof.flops_from = roof.bytes_from = from;
  roof.flops_per_s = flops / mean_ns * 1e9;
  roof.bytes_per_s = bytes / mean_ns * 1e9;
  roof.intensity = flops / bytes;
  roof.attainable_flops_per_s = roof.flops_per_s / utilization;
  roof.utilization = utilization;
  roof.bound = bound;
  roof.ceiling = ceiling;
  roof.evidence = evidence;
  roof.bound_from = from == Provenance::kCounter ? "counter" : "shape_model";
  roof.grade = grade_of(bound, utilization);
  return roof;
}

inline Ceilings h200_ceilings() {
  return {"NVIDIA H200",
          {{"bf16 tensor", 989.4e12, "table"}, {"f32", 66.9e12, "table"}},
          {{"dram", 4.8e12, "table"}, {"l2", 10.6e12, "measured"}}};
}

inline TimelineAnalysis sample_timeline() {
  TimelineAnalysis timeline;
  DeviceTime time;
  time.window_ns = time.span_ns = 400'000'000;
  time.busy_ns = 224'000'000;
  time.kernel_ns = 220'000'000;
  time.compute_ns = 200'000'000;
  time.communication_ns = 40'000'000;
  time.compute_and_communication_ns = 20'000'000;
  time.copy_ns = 10'000'000;
  time.compute_and_copy_ns = 6'000'000;
  time.exposed_communication_ns = 20'000'000;
  time.exposed_copy_ns = 4'000'000;
  time.idle_ns = {32'000'000, 132'000'000, 6'000'000, 4'000'000, 0, 2'000'000};
  time.streams = 3;
  time.activities = 1294;
  time.work_span_ns = 410'000'000;
  time.work_busy_ns = 226'000'000;
  time.kernel_sum_ns = 168'911'000;
  timeline.devices = {time};
  for (int i = 0; i < 2; ++i)
    timeline.steps.push_back({"ProfilerStep#" + std::to_string(i), i * 200'000'000, 200'000'000,
                              100'000'000, 10'000'000, 1'500'000, 500'000, 6'000'000, 66'000'000,
                              14'000'000, 2'000'000});
  timeline.steps_from = "ranges";
  timeline.mean_step = timeline.steps[0];
  timeline.mean_step.name = "mean of 2 steps";
  timeline.gaps = {{0, 120'000'000, 66'000'000, IdleCause::kDataStarvation, "saxpy",
                    "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT",
                    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__ 65.9 ms"},
                   {0, 20'000'000, 3'000'000, IdleCause::kSynchronization, "saxpy", "saxpy",
                    "cudaStreamSynchronize 1.2 ms"}};
  timeline.queues.resize(1);
  timeline.queues[0].stream = 7;
  timeline.queues[0].mean_depth = 12.25;
  timeline.queues[0].max_depth = 311;
  timeline.launches = {1270, 4'100, 12'000, 130'000, 1000, 2'499'500};
  timeline.sequences.resize(1);
  RepeatedSequence& sequence = timeline.sequences[0];
  sequence.kernels = {"saxpy", "copy"};
  sequence.length = 31;
  sequence.repeats = 12;
  sequence.total_ns = 45'000'000;
  sequence.busy_ns = 21'000'000;
  sequence.stream = 7;
  timeline.syncs = 12;
  timeline.sync_idle_ns = 6'000'000;
  TimelineAnalysis::Overview overview;
  overview.bucket_ns = 20'000'000;
  for (int i = 0; i < 20; ++i) {
    const bool starved = i % 10 >= 6;
    overview.shares.push_back(starved ? std::array<float, 4>{0, 0, 0.05F, 0.95F}
                                      : std::array<float, 4>{0.8F, 0.1F, 0.02F, 0.08F});
  }
  timeline.overview = {overview};
  timeline.limits = {"no CUDA graph ids: kernels of graphs are not separated from others"};
  return timeline;
}

// Counters, shapes, roofs, a timeline: a report that lacks nothing.
inline Report full_report(GroupBy group_by = GroupBy::kKernel) {
  Profile profile = sketches_only();
  profile.source = "kineto";
  profile.environment.devices.pop_back();
  for (KernelRow& row : profile.kernels) {
    row.device = 0;
    row.op = "aten::mm";
    row.dtype = "bf16";
    row.shape = row.launch.grid[0] == 128 ? "M=8192,N=8192,K=4096" : "M=4096,N=8192,K=4096";
  }
  profile.kernels[3].shape = "N=32,C=64,H=56,W=56,K=64,R=3,S=3,P=56,Q=56,groups=1";
  profile.kernels[5].dtype = "f32";
  profile.kernels[5].op = profile.kernels[5].shape = "";
  Report report = build_report(profile, group_by);
  report.timeline = sample_timeline();
  report.ceilings = {h200_ceilings()};
  for (KernelStat& kernel : report.kernels) {
    const double mean = kernel.duration.mean_ns();
    kernel.roof = {};
    if (kernel.label == "saxpy") {
      kernel.roof = roof_of(2e6, 12e6, Provenance::kCounter, mean, Bound::kMemory, 0.71, "dram",
                            "71 % of DRAM bandwidth, 1 % of f32 (counters)");
      kernel.roof.model_bytes = 11e6;
      kernel.counters = {{"dram__bytes.sum", 12e6, 1000},
                         {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 1e6, 1000}};
      kernel.roof.occupancy_theoretical = 0.75;
      kernel.roof.occupancy_achieved = 0.684;
      kernel.roof.occupancy_limiter = "registers";
      kernel.roof.occupancy_measured = true;
    } else if (kernel.name.op_class == "gemm") {
      kernel.roof = roof_of(2.0 * 4096 * 8192 * 4096, 2.0 * (4096. * 4096 + 2 * 4096. * 8192),
                            Provenance::kShapeModel, mean, Bound::kCompute, 0.31, "bf16 tensor",
                            "31 % of bf16 tensor, 7 % of DRAM bandwidth (shape model)");
    }
  }
  return report;
}

}  // namespace purlin::analyze
