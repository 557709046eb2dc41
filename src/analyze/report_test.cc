// SPDX-License-Identifier: Apache-2.0
#include "analyze/report.h"

#include "analyze/report_text.h"
#include "base/files.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace purlin::analyze {
namespace {

KernelRow row_of(const char* name, std::uint32_t blocks, int device, double ns, int count) {
  KernelRow row;
  row.name = name;
  row.launch.grid = {blocks, 1, 1};
  row.launch.block = {256, 1, 1};
  row.registers = blocks;
  row.device = device;
  for (int i = 0; i < count; ++i) row.duration.add(ns + i);
  return row;
}

Profile sample_profile() {
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

// Compares with tests/golden/NAME; PURLIN_UPDATE_GOLDEN=1 writes it instead.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = join_path(PURLIN_SOURCE_DIR, "tests/golden/" + name);
  if (std::getenv("PURLIN_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_atomic(path, text).is_ok());
  }
  EXPECT_EQ(text, read_file(path).value_or("")) << "golden file " << path;
}

TEST(Report, RanksAndMergesByKernel) {
  const Report report = build_report(sample_profile(), GroupBy::kKernel);
  ASSERT_EQ(report.kernels.size(), 4u);
  const KernelStat& first = report.kernels[0];
  EXPECT_EQ(first.duration.count(), 250);  // both launch shapes, both devices of one model
  EXPECT_EQ(first.launch_shapes, 2);
  EXPECT_EQ(first.launch.grid[0], 128u);  // the shape that took most time
  EXPECT_EQ(first.registers, 128u);
  double share = 0;
  for (const KernelStat& kernel : report.kernels) share += kernel.share;
  EXPECT_NEAR(share, 1, 1e-12);
  EXPECT_EQ(report.launches, 1290);
  EXPECT_EQ(report.kernels[1].label, "saxpy");
  EXPECT_EQ(report.kernels[2].label, "wgrad_engine<128>");
  EXPECT_EQ(report.kernels[3].label, "wgrad_engine<512>");
}

TEST(Report, KeepsLaunchShapesApartWhenAsked) {
  const Report report = build_report(sample_profile(), GroupBy::kLaunch);
  ASSERT_EQ(report.kernels.size(), 5u);
  EXPECT_EQ(report.kernels[0].launch.grid[0], 128u);
  EXPECT_EQ(report.kernels[1].duration.count(), 150);  // cuda:0 and cuda:1 are one model
  EXPECT_EQ(report.kernels[1].launch_shapes, 1);
}

TEST(Report, EqualTotalsRankByName) {
  Profile profile;
  profile.kernels = {row_of("b", 1, 0, 100, 3), row_of("a", 1, 0, 100, 3)};
  EXPECT_EQ(build_report(profile, GroupBy::kKernel).kernels[0].label, "a");
}

TEST(Report, DifferentModelsAreNotMixed) {
  Profile profile = sample_profile();
  profile.environment.devices[1].name = "NVIDIA A100";
  const Report report = build_report(profile, GroupBy::kKernel);
  EXPECT_EQ(report.kernels.size(), 5u);
  const std::string text = render_text(report, Terminal(false, false, false, 120));
  EXPECT_NE(text.find("on NVIDIA A100"), std::string::npos);
}

TEST(Report, TextAndDocumentsAreAsRecorded) {
  const Profile profile = sample_profile();
  const Report report = build_report(profile, GroupBy::kKernel);
  expect_golden("report.txt", render_text(report, Terminal(false, false, false, 100)));
  expect_golden("report_utf8_color.txt", render_text(report, Terminal(true, true, true, 100)));
  expect_golden("report_launch.txt", render_text(build_report(profile, GroupBy::kLaunch),
                                                 Terminal(false, false, false, 100), {3}));
  expect_golden("report.csv", to_csv(report));
  Json document = to_json(report);
  EXPECT_FALSE(document["tool_version"].as_string().empty());
  document.set("tool_version", "ANY");
  expect_golden("report.json", document.dump(2) + "\n");
}

TEST(Report, NoLineIsWiderThanTheTerminal) {
  Profile profile = sample_profile();
  profile.kernels[0].name = std::string(500, 'k');
  profile.command = std::string(300, 'c');
  for (const GroupBy by : {GroupBy::kKernel, GroupBy::kLaunch})
    for (const std::string& line :
         split(render_text(build_report(profile, by), Terminal(true, true, true, 100)), '\n'))
      EXPECT_LE(visible_width(line), 100u) << line;
}

TEST(Report, APartialProfileSaysSo) {
  Profile profile = sample_profile();
  profile.partial = true;
  const Report report = build_report(profile, GroupBy::kKernel);
  const std::string text = render_text(report, Terminal(false, false, false, 100));
  EXPECT_NE(text.find("PARTIAL PROFILE"), std::string::npos);
  EXPECT_LT(text.find("PARTIAL PROFILE"), text.find("share"));
  EXPECT_TRUE(to_json(report)["coverage"]["partial"].as_bool());
}

TEST(Report, AnEmptyProfileIsAReportToo) {
  const Report report = build_report(Profile{}, GroupBy::kKernel);
  const std::string text = render_text(report, Terminal(false, false, false, 100));
  EXPECT_NE(text.find("No kernels"), std::string::npos);
  EXPECT_NE(text.find("coverage"), std::string::npos);
  EXPECT_EQ(to_json(report)["kernels"].size(), 0u);
  EXPECT_TRUE(to_json(report)["kernels"].is_array());
}

}  // namespace
}  // namespace purlin::analyze
