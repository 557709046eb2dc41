// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/text.h"

#include "analyze/report/finding.h"
#include "analyze/report/histogram.h"
#include "analyze/report/selection.h"
#include "analyze/report/testing.h"
#include "analyze/text/layout.h"
#include "base/files.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace purlin::analyze {
namespace {

// Compares with tests/golden/NAME; PURLIN_UPDATE_GOLDEN=1 writes it instead.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = join_path(PURLIN_SOURCE_DIR, "tests/golden/" + name);
  if (std::getenv("PURLIN_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_atomic(path, text).is_ok());
  }
  EXPECT_EQ(text, read_file(path).value_or("")) << "golden file " << path;
}

std::string document_of(const Report& report) {
  Json document = to_json(report);
  EXPECT_FALSE(document["tool_version"].as_string().empty());
  document.set("tool_version", "ANY");
  return document.dump(2) + "\n";
}

const Terminal kPlain(false, false, false, 100);

TEST(ReportText, SketchesOnlyAreAsRecorded) {
  const Profile profile = sketches_only();
  const Report report = build_report(profile, GroupBy::kKernel);
  expect_golden("report.txt", render_text(report, kPlain));
  expect_golden("report_utf8_color.txt", render_text(report, Terminal(true, true, true, 100)));
  expect_golden("report_launch.txt",
                render_text(build_report(profile, GroupBy::kLaunch), kPlain, {3}));
  expect_golden("report.csv", to_csv(report));
  expect_golden("report.json", document_of(report));
}

// A value, a guess and what is not known look the same in every place.
TEST(ReportText, AGuessAndTheUnknownAreMarkedEverywhere) {
  Roof roof;
  EXPECT_EQ(bound_text(roof), "-");
  roof.bound = Bound::kMemory;
  roof.bound_from = "op_class";
  EXPECT_EQ(bound_text(roof), "memory?");
  roof.bound_from = "counter";
  roof.utilization = 0.31;
  EXPECT_EQ(bound_text(roof), "memory 31%");
  KernelStat opencl;
  EXPECT_EQ(resources_text(opencl), "registers and memory not recorded");
  opencl.launch.dynamic_shared_bytes = 4096;
  EXPECT_EQ(resources_text(opencl),
            "registers and memory not recorded; 4.0 KiB dynamic shared memory a block");
  opencl.registers = 1;
  EXPECT_NE(resources_text(opencl).find("1 register a thread, 0 B static"), std::string::npos);
}

TEST(ReportText, WhatALaunchDidNotRecordIsNoZero) {
  Profile profile = sketches_only();
  KernelRow& row = profile.kernels.front();
  row.registers = row.static_shared_bytes = row.local_bytes = 0;
  row.launch.block = {0, 0, 0};
  const Report report = build_report(profile, GroupBy::kLaunch);
  const Json document = to_json(report);
  const auto unknown = [](const Json& kernel) {
    return kernel["launch"]["block"].is_null() && kernel["registers"].is_null() &&
           kernel["local_bytes"].is_null();
  };
  const Json::Array& kernels = document["kernels"].items();
  EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(), unknown), 1);
  EXPECT_EQ(to_csv(report).find("0x0x0"), std::string::npos);
  EXPECT_EQ(render_text(report, kPlain).find("0x0x0"), std::string::npos);
}

TEST(ReportText, DevicesWithTheSameFactsShareALine) {
  Profile profile = sketches_only();
  auto& devices = profile.environment.devices;
  const auto text_of = [&] { return render_text(build_report(profile, GroupBy::kKernel), kPlain); };
  const std::string facts = "  NVIDIA H200, sm_90, 132 units, driver 580.159.04";
  EXPECT_NE(text_of().find("\ncuda:0, cuda:1" + facts + "\n"), std::string::npos) << text_of();
  // Two ranks, each of which lists both devices of the host.
  devices.insert(devices.end(), {devices[0], devices[1]});
  EXPECT_NE(text_of().find("\ncuda:0, cuda:1" + facts + ", in 2 recordings\n"), std::string::npos)
      << text_of();
  devices.resize(2);
  devices[1].name = "NVIDIA A100";
  EXPECT_NE(text_of().find("\ncuda:0" + facts + "\n"), std::string::npos) << text_of();
  EXPECT_NE(text_of().find("\ncuda:1  NVIDIA A100, "), std::string::npos) << text_of();
  devices[1] = devices[0];
  devices[0].id = devices[1].id = "";
  EXPECT_NE(text_of().find("\n2 x" + facts.substr(1) + "\n"), std::string::npos) << text_of();
  devices.assign(6, devices[0]);
  for (int i = 0; i < 6; ++i) devices[static_cast<std::size_t>(i)].id = "cuda:" + std::to_string(i);
  EXPECT_NE(text_of().find("\ncuda:0, cuda:1, cuda:2, cuda:3 and 2 more" + facts + "\n"),
            std::string::npos)
      << text_of();
}

TEST(ReportText, AFullReportIsAsRecorded) {
  const Report report = full_report();
  expect_golden("report_full.txt", render_text(report, kPlain));
  expect_golden("report_full_80.txt", render_text(report, Terminal(false, false, false, 80)));
  expect_golden("report_full_140.txt", render_text(report, Terminal(false, false, true, 140)));
  expect_golden("report_full.csv", to_csv(report));
  expect_golden("report_full.json", document_of(report));
  const Report by_launch = full_report(GroupBy::kLaunch);
  expect_golden("report_kernel.txt",
                render_kernel(report.kernels[0], GroupBy::kKernel, by_launch, kPlain) + "\n" +
                    render_kernel(report.kernels[1], GroupBy::kKernel, by_launch, kPlain));
}

// No names of a profile, however long, widen a line; none of them reaches the terminal's controls.
TEST(ReportText, NoLineIsWiderThanTheTerminal) {
  Report report = full_report();
  const std::string hostile =
      std::string(300, 'k') + "\x1b[2J\n\r\x07" + "\xc2\x9b" + std::string(300, 'z');
  report.command = report.source = report.environment.devices[0].name = hostile;
  report.environment.build = hostile;
  for (KernelStat& kernel : report.kernels)
    kernel.label = kernel.name.full = kernel.op = kernel.shape = kernel.dtype =
        kernel.roof.ceiling = kernel.roof.evidence = kernel.roof.occupancy_limiter = hostile;
  for (Counter& counter : report.kernels[1].counters) counter.name = hostile;
  report.kernels[2].device = hostile;
  report.copies[0].kind = "h2d\x1b";
  report.coverage.notes[0].text = report.coverage.notes[0].cause = hostile;
  report.timeline.limits = {hostile};
  report.timeline.gaps[0].before = report.timeline.gaps[0].evidence = hostile;
  report.timeline.sequences[0].hindrance = report.timeline.sequences[0].kernels[0] = hostile;
  report.timeline.mean_step.name = hostile;
  report.processes[0].command = report.processes[0].layer = hostile;
  for (const int width : {80, 100, 140, 200}) {
    const Terminal terminal(true, false, true, width);
    const std::string text =
        render_text(report, terminal) +
        render_kernel(report.kernels[1], GroupBy::kKernel, full_report(GroupBy::kLaunch), terminal);
    for (const std::string& line : split(text, '\n')) {
      EXPECT_LE(visible_width(line), static_cast<std::size_t>(width)) << line;
      for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
      EXPECT_EQ(line.find("\xc2\x9b"), std::string::npos);
    }
  }
}

TEST(ReportText, TenThousandRowsAndNone) {
  Profile profile;
  for (int i = 0; i < 10'000; ++i)
    profile.kernels.push_back(row_of(("kernel_" + std::to_string(i)).c_str(), 1, 0, 1000 + i, 2));
  const Report report = build_report(profile, GroupBy::kKernel);
  EXPECT_NE(render_text(report, kPlain).find("in the other 9980"), std::string::npos);
  EXPECT_EQ(split(to_csv(report), '\n').size(), 10'002u);
  EXPECT_EQ(to_json(report)["kernels"].size(), 10'000u);
  const Report none = build_report({}, GroupBy::kKernel);
  EXPECT_EQ(split(to_csv(none), '\n').size(), 2u);
  EXPECT_EQ(find(none).front().kind, "nothing");
}

TEST(Finding, NamesWhatIsMostAtStake) {
  Report report = full_report();
  EXPECT_EQ(find(report).front().text,
            "GPU idle 44% of 400 ms: data starvation 33%, host launch 8%, synchronization 2%");
  EXPECT_NEAR(find(report).front().share, 0.44, 1e-9);
  // A busy device: now the kernel far from its roof is the matter.
  DeviceTime& time = report.timeline.devices[0];
  time.busy_ns = time.span_ns;
  time.idle_ns = {};
  time.compute_ns = time.span_ns;
  time.communication_ns = time.compute_and_communication_ns = 0;
  const Finding kernel = find(report).front();
  EXPECT_EQ(kernel.kind, "kernel");
  EXPECT_NE(kernel.text.find("nvjet"), std::string::npos);
  EXPECT_NE(kernel.text.find("owns 98% of the kernel time at 31% of the bf16 tensor roof"),
            std::string::npos)
      << kernel.text;
  // With durations only, the finding is the share.
  const Finding share = find(build_report(sketches_only(), GroupBy::kKernel)).front();
  EXPECT_EQ(share.kind, "share");
  EXPECT_NE(share.text.find("its distance to the roof is not known"), std::string::npos);
  // So it is with a little idle time. With much idle time, the share comes second.
  Report unknown = build_report(sketches_only(), GroupBy::kKernel);
  unknown.timeline = report.timeline;
  DeviceTime& device = unknown.timeline.devices[0];
  device.busy_ns = 95 * device.span_ns / 100;
  device.idle_ns = {device.span_ns - device.busy_ns};
  EXPECT_EQ(find(unknown).front().kind, "share");
  EXPECT_EQ(find(unknown)[1].kind, "idle");
  device.busy_ns = 50 * device.span_ns / 100;
  device.idle_ns = {device.span_ns - device.busy_ns};
  EXPECT_EQ(find(unknown).front().kind, "idle");
  EXPECT_EQ(find(unknown)[1].kind, "share");
}

// Traces that hold counters and no launches.
TEST(ReportText, CountersWithoutDurations) {
  Profile profile = sketches_only();
  for (KernelRow& row : profile.kernels) row.duration = {};
  profile.kernels[0].counters = {{"sm__inst_executed.sum", 5, 1}};
  const Report report = build_report(profile, GroupBy::kKernel);
  EXPECT_NE(find(report).front().text.find("no durations"), std::string::npos);
  EXPECT_EQ(render_text(report, kPlain).find("0 ns"), std::string::npos);
  EXPECT_TRUE(to_json(report)["kernels"].items()[0]["p50_ns"].is_null());
  for (const KernelStat& kernel : report.kernels)
    EXPECT_NE(render_kernel(kernel, GroupBy::kKernel, report, kPlain).find("not recorded"),
              std::string::npos);
}

TEST(Selection, SortsFiltersAndKeepsADevice) {
  Report report = full_report();
  sort_rows(report, SortBy::kCount);
  EXPECT_EQ(report.kernels[0].label, "saxpy");
  sort_rows(report, SortBy::kP95);
  EXPECT_EQ(report.kernels[0].name.family, "cublas");
  sort_rows(report, SortBy::kHeadroom);
  EXPECT_EQ(report.kernels[1].label, "saxpy");
  EXPECT_LT(headroom_ns(report.kernels[2]), 0);  // not known: last
  ASSERT_TRUE(filter_rows(report, "^SAXPY|wgrad.*128").is_ok());
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.rows_left_out, 2u);
  EXPECT_EQ(filter_rows(report, "(").code(), Code::kInvalid);
  EXPECT_FALSE(sort_from_text("size").is_ok());

  Profile profile = sketches_only();
  profile.timeline.activities.resize(2);
  profile.timeline.activities[0].row = 1;
  profile.timeline.activities[1].row = 2;
  ASSERT_TRUE(keep_device(profile, "cuda:1").is_ok());
  EXPECT_EQ(build_report(profile, GroupBy::kKernel).launches, 50);
  ASSERT_EQ(profile.timeline.activities.size(), 1u);
  EXPECT_EQ(profile.timeline.activities[0].row, 0u);
  EXPECT_EQ(keep_device(profile, "cuda:7").code(), Code::kNotFound);
}

TEST(Layout, NamesWrapAtTheirSeams) {
  EXPECT_EQ(wrap_name("nvjet_sm90_tst_256x128_64x4", 16, 3),
            (std::vector<std::string>{"nvjet_sm90_tst_", "256x128_64x4"}));
  EXPECT_EQ(wrap_name("", 16, 3), std::vector<std::string>{""});
  const std::vector<std::string> cut = wrap_name(std::string(200, 'x'), 20, 3);
  ASSERT_EQ(cut.size(), 3u);
  EXPECT_EQ(cut[1], "xxxxxxxxx...xxxxxxxx");
}

TEST(Layout, FiguresHaveThreeDigits) {
  EXPECT_EQ(short_ns(999.4), "999 ns");
  EXPECT_EQ(short_ns(999.6), "1.00 us");
  EXPECT_EQ(short_ns(123'456'789), "123 ms");
  EXPECT_EQ(short_ns(9'996), "10.0 us");
  EXPECT_EQ(si(989.4e12, "FLOP/s"), "989 TFLOP/s");
}

TEST(Histogram, CountsAddUpAndCoverTheSpan) {
  Sketch sketch;
  for (int i = 1; i <= 1000; ++i) sketch.add(i * 1000.0, 2);
  const std::vector<Bin> bins = histogram(sketch, 24);
  ASSERT_FALSE(bins.empty());
  EXPECT_LE(bins.size(), 24u);
  double count = 0;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    count += bins[i].count;
    EXPECT_LT(bins[i].low_ns, bins[i].high_ns);
    EXPECT_DOUBLE_EQ(bins[i].low_ns, i == 0 ? 1000 : bins[i - 1].high_ns);
  }
  EXPECT_EQ(count, sketch.count());
  EXPECT_EQ(bins.front().low_ns, 1000);
  EXPECT_EQ(bins.back().high_ns, 1'000'000);
  EXPECT_TRUE(histogram({}, 24).empty());
}

TEST(ReportText, SampledStallsAreAsRecorded) {
  Profile profile = sketches_only();
  add_sampled_stalls(profile);
  const Report report = build_report(profile, GroupBy::kKernel);
  const Report by_launch = build_report(profile, GroupBy::kLaunch);
  std::string text = render_text(report, kPlain) + "\n";
  for (const KernelStat& kernel : report.kernels)
    if (!kernel.sampled.empty()) text += render_kernel(kernel, GroupBy::kKernel, by_launch, kPlain);
  for (const KernelStat& kernel : by_launch.kernels)
    if (!kernel.sampled.empty())
      text += "\n" +
              render_kernel(kernel, GroupBy::kLaunch, by_launch, Terminal(false, false, false, 80));
  expect_golden("report_stalls.txt", text);
  expect_golden("report_stalls.json", document_of(report));
}

// A trace of PyTorch's profiler has slower steps than the program: the headline is of the
// program's.
TEST(ReportText, TheHeadlineIsOfTheStepWithoutTheTrace) {
  Report report = full_report();  // steps of 200 ms, idle 44 %
  report.coverage.step_ns = 150e6;
  const auto shows = [&](const char* headline) {
    return render_text(report, kPlain).find(headline) != std::string::npos;
  };
  EXPECT_TRUE(shows(">> nvjet")) << "the kernel's headroom is greater than 25 % of idle time";
  EXPECT_TRUE(
      find(report)[1].text.starts_with("GPU idle 25% of a step of 150 ms; while recorded,"));
  report.coverage.step_ns = 250e6;  // no trace makes a step faster
  EXPECT_TRUE(shows(">> GPU idle 44% of 400 ms:"));
}

}  // namespace
}  // namespace purlin::analyze
