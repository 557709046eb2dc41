// SPDX-License-Identifier: Apache-2.0
#include "analyze/diff/diff.h"

#include "base/files.h"
#include "base/random.h"
#include "profile/import/import.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::analyze {
namespace {

KernelRow diff_row(const std::string& name, const std::string& op, const std::string& shape,
                   std::initializer_list<double> durations) {
  KernelRow row;
  row.name = name, row.op = op, row.shape = shape;
  for (double ns : durations) row.duration.add(ns);
  return row;
}

Profile profile_of(std::vector<KernelRow> rows, const char* gpu = "NVIDIA H200",
                   const char* driver = "580.1") {
  Profile profile;
  DeviceInfo device;
  device.name = gpu, device.driver = driver;
  profile.environment.devices = {device};
  profile.kernels = std::move(rows);
  return profile;
}

Diff diff_of(const Profile& a, const Profile& b) {
  Result<Diff> diff = diff_profiles(a, b);
  EXPECT_TRUE(diff.is_ok());
  return std::move(diff).value();
}

TEST(Diff, MoreLaunchesAndLongerOnesAreToldApart) {
  const Diff diff = diff_of(profile_of({diff_row("k", "aten::mm", "M=1", {100, 100})}),
                            profile_of({diff_row("k", "aten::mm", "M=1", {150, 150, 150})}));
  ASSERT_EQ(diff.items.size(), 1u);
  const DiffItem& item = diff.items[0];
  EXPECT_EQ(item.match, Match::kKernelAndShape);
  EXPECT_EQ(item.change, 250);
  EXPECT_EQ(item.causes.count, 125);     // one launch more, at the mean of 100 and 150
  EXPECT_EQ(item.causes.duration, 125);  // 50 longer, at the mean of 2 and 3 launches
  EXPECT_EQ(item.low, 250);              // all launches alike: no spread
  EXPECT_TRUE(item.certain);
}

// Windows that are known by time alone on an overloaded machine: the total is known to a half.
TEST(Diff, TheErrorOfSampledTotalsIsTheUncertainty) {
  Profile a = profile_of({diff_row("k", "", "", {100, 100})});
  const Profile b = profile_of({diff_row("k", "", "", {100, 100, 100})});
  EXPECT_TRUE(diff_of(a, b).items[0].certain);
  a.coverage.sampling.total_ns = 200;
  a.coverage.sampling.unsure_ns = 120;
  const Diff diff = diff_of(a, b);
  EXPECT_EQ(diff.items[0].change, 100);
  EXPECT_NEAR(diff.items[0].low, -20, 1e-9);
  EXPECT_NEAR(diff.items[0].high, 220, 1e-9);
  EXPECT_FALSE(diff.items[0].certain);
  ASSERT_FALSE(diff.notes.empty());
  EXPECT_EQ(diff.notes[0], "totals of A are estimates from windows, ±60 % (95 %)");
}

TEST(Diff, TheSpreadOfLaunchesIsTheUncertainty) {
  const Diff diff = diff_of(profile_of({diff_row("k", "", "", {50, 100, 150, 200})}),
                            profile_of({diff_row("k", "", "", {60, 110, 140, 210})}));
  EXPECT_EQ(diff.items[0].change, 20);
  EXPECT_LT(diff.items[0].low, 0);
  EXPECT_GT(diff.items[0].high, 20);
  EXPECT_FALSE(diff.items[0].certain);
}

// Compilers put a device, an inode and a line into the name of a region's kernel.
TEST(Diff, RegionsOfTwoBuildsAreTheSameKernel) {
  const Diff diff =
      diff_of(profile_of({diff_row("__omp_offloading_32_2f3c6__QMnorm_modPnorm_l26", "", "", {100}),
                          diff_row("__omp_offloading_32_2f3c6__QMa_modPa_l7", "", "", {100}),
                          diff_row("nvkernel_solve_F1L204_2", "", "", {100})}),
              profile_of({diff_row("__omp_offloading_30_57b9f__QMnorm_modPnorm_l23", "", "", {110}),
                          diff_row("__omp_offloading_30_57b9f__QMa_modPa_l7", "", "", {120}),
                          diff_row("nvkernel_solve_F1L210_2", "", "", {130})}));
  ASSERT_EQ(diff.items.size(), 3u);
  for (const DiffItem& item : diff.items) EXPECT_EQ(item.match, Match::kKernel) << item.name;
  EXPECT_EQ(diff.items[0].change, 30);
  EXPECT_EQ(diff.items[2].change, 10);
}

TEST(Diff, EachKernelMatchesAtTheFirstLevelThatFits) {
  const Profile a = profile_of(
      {diff_row("same", "aten::mm", "M=1", {100}), diff_row("reshaped", "aten::mm", "M=2", {100}),
       diff_row("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "aten::mm", "M=3", {100}),
       diff_row("vectorized_elementwise_kernel", "aten::add", "n=1", {100}),
       diff_row("lost", "", "", {100})});
  const Profile b = profile_of(
      {diff_row("same", "aten::mm", "M=1", {100}), diff_row("reshaped", "aten::mm", "M=9", {300}),
       diff_row("ampere_sgemm_128x64_tn", "aten::mm", "M=3", {150}),
       diff_row("triton_poi_fused_add_0", "", "", {30}), diff_row("found", "", "", {70})});
  const Diff diff = diff_of(a, b);
  ASSERT_EQ(diff.items.size(), 6u);
  const auto item = [&](std::string_view name) -> const DiffItem& {
    for (const DiffItem& each : diff.items)
      if (each.name == name) return each;
    ADD_FAILURE() << name;
    return diff.items[0];
  };
  EXPECT_EQ(item("same").match, Match::kKernelAndShape);
  EXPECT_EQ(item("reshaped").match, Match::kKernel);
  EXPECT_EQ(item("reshaped").causes.shape, 200);
  EXPECT_EQ(item("reshaped").why, (std::vector<std::string>{"M=2 -> M=9"}));
  EXPECT_EQ(item("aten::mm").match, Match::kOpAndShape);
  EXPECT_EQ(item("aten::mm").causes.kernel, 50);
  EXPECT_EQ(item("elementwise").match, Match::kOpClass);
  EXPECT_EQ(item("elementwise").causes.gone, -100);
  EXPECT_EQ(item("elementwise").causes.appeared, 30);
  EXPECT_EQ(item("lost").causes.gone, -100);
  EXPECT_EQ(item("found").causes.appeared, 70);
  EXPECT_EQ(diff.change, 150);
  EXPECT_EQ(diff.causes.total(), 150);
}

TEST(Diff, ShapesThatOneSideDidNotRecordAreNoChangeOfShape) {
  const Diff diff = diff_of(profile_of({diff_row("k", "aten::mm", "M=1", {100})}),
                            profile_of({diff_row("k", "", "", {130})}));
  EXPECT_EQ(diff.items[0].causes.duration, 30);
  EXPECT_EQ(diff.items[0].causes.shape, 0);
}

TEST(Diff, AnotherGpuOrDriverExplainsDurationsOfTheSameKernel) {
  const KernelRow slow = diff_row("k", "", "", {100}), fast = diff_row("k", "", "", {60});
  const Diff gpu = diff_of(profile_of({slow}, "NVIDIA A100"), profile_of({fast}));
  EXPECT_EQ(gpu.items[0].causes.environment, -40);
  EXPECT_EQ(gpu.items[0].why[0], "GPU NVIDIA A100 -> NVIDIA H200");
  const Diff driver = diff_of(profile_of({slow}), profile_of({fast}, "NVIDIA H200", "590.2"));
  EXPECT_EQ(driver.items[0].causes.environment, -40);
  // With another build as well the driver is not singled out.
  Profile other = profile_of({fast}, "NVIDIA H200", "590.2");
  other.environment.build = "v2";
  const Diff both = diff_of(profile_of({slow}), other);
  EXPECT_EQ(both.items[0].causes.duration, -40);
  EXPECT_EQ(both.notes.size(), 2u);
}

TEST(Diff, ALowerClockExplainsAsMuchAsItCan) {
  KernelRow a = diff_row("k", "", "", {1000}), b = diff_row("k", "", "", {1300});
  a.counters = {{"smsp__cycles_elapsed.avg.per_second", 1.98e9, 1}};
  b.counters = {{"smsp__cycles_elapsed.avg.per_second", 1.62e9, 1}};
  const Diff diff = diff_of(profile_of({a}), profile_of({b}));
  const Causes& causes = diff.items[0].causes;
  ASSERT_DOUBLE_EQ(diff.items[0].a.clock_mhz, 1980);
  EXPECT_NEAR(causes.environment, 1150 * (1980.0 - 1620) / 1800, 1e-9);  // of 300
  EXPECT_DOUBLE_EQ(causes.environment + causes.duration, 300);
}

Profile random_profile_for_diff(Random& random) {
  std::vector<KernelRow> rows;
  for (std::size_t i = random.below(8); i > 0; --i) {
    const char* names[] = {"gemm_a", "gemm_b", "softmax", "mine", "theirs"};
    const char* ops[] = {"", "aten::mm", "aten::add"};
    const char* shapes[] = {"", "M=1", "M=2"};
    KernelRow row =
        diff_row(names[random.below(5)], ops[random.below(3)], shapes[random.below(3)], {});
    for (std::size_t launch = 1 + random.below(9); launch > 0; --launch)
      row.duration.add(static_cast<double>(1 + random.below(100'000)));
    rows.push_back(row);
  }
  Profile profile = profile_of(rows, random.below(4) == 0 ? "NVIDIA A100" : "NVIDIA H200",
                               random.below(4) == 0 ? "570" : "580");
  CopyRow copy;
  copy.kind = random.below(2) == 0 ? "h2d" : "d2h";
  copy.bytes = static_cast<double>(random.below(3) * 1000);
  copy.duration.add(static_cast<double>(1 + random.below(1000)));
  profile.copies = {copy};
  return profile;
}

TEST(Diff, CausesAddUpToTheChangeAndTurnSignWithTheSides) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const Profile a = random_profile_for_diff(random), b = random_profile_for_diff(random);
    const Diff diff = diff_of(a, b), back = diff_of(b, a);
    double total_a = 0, total_b = 0, seen_a = 0, seen_b = 0, launches = 0;
    for (const KernelRow& row : a.kernels) total_a += row.duration.total_ns();
    for (const KernelRow& row : b.kernels) total_b += row.duration.total_ns();
    for (const DiffItem& item : diff.items) {
      seen_a += item.a.total, seen_b += item.b.total;
      launches += item.a.duration.count() + item.b.duration.count();
      EXPECT_NEAR(item.causes.total(), item.change, 1e-6 * (1 + std::abs(item.change)));
      EXPECT_DOUBLE_EQ(item.change, item.b.total - item.a.total);
      EXPECT_LE(item.low, item.change);
      EXPECT_GE(item.high, item.change);
    }
    for (const DiffItem& item : diff.copies)
      EXPECT_NEAR(item.causes.total(), item.change, 1e-6 * (1 + std::abs(item.change)));
    double all = 0;
    for (const Profile* side : {&a, &b})
      for (const KernelRow& row : side->kernels) all += row.duration.count();
    EXPECT_EQ(launches, all);  // every launch is in exactly one item
    EXPECT_NEAR(seen_a, total_a, 1e-6);
    EXPECT_NEAR(seen_b, total_b, 1e-6);
    EXPECT_NEAR(diff.change, total_b - total_a, 1e-6);
    EXPECT_NEAR(diff.causes.total(), diff.change, 1e-4);
    const Causes &there = diff.causes, &again = back.causes;
    EXPECT_NEAR(there.count, -again.count, 1e-4);
    EXPECT_NEAR(there.duration, -again.duration, 1e-4);
    EXPECT_NEAR(there.shape, -again.shape, 1e-4);
    EXPECT_NEAR(there.kernel, -again.kernel, 1e-4);
    EXPECT_NEAR(there.environment, -again.environment, 1e-4);
    EXPECT_NEAR(there.gone, -again.appeared, 1e-4);
  }
}

TEST(Diff, StepsNeedATimeline) {
  const Profile a = profile_of({diff_row("k", "", "", {100})});
  EXPECT_FALSE(diff_of(a, a).per_step);
  const auto refused = diff_profiles(a, a, DiffUnit::kStep);
  ASSERT_FALSE(refused.is_ok());
  EXPECT_NE(refused.status().message().find("--per run"), std::string::npos);
}

Profile import(const char* name) {
  const std::string path = join_path(PURLIN_SOURCE_DIR, std::string("tests/data/traces/") + name);
  Result<Profile> profile = profile::import_chrome_trace(path, {});
  EXPECT_TRUE(profile.is_ok()) << profile.status().message();
  return std::move(profile).value();
}

// A fusion on an H200: 5 elementwise kernels a step become one. The sums are those of a script over
// the traces' kernel events (tests/data/traces/README.md).
TEST(Diff, AFusionIsKernelsGoneAndOneNew) {
  const Diff diff = diff_of(import("kineto_h200_fusion_before.json.gz"),
                            import("kineto_h200_fusion_after.json.gz"));
  EXPECT_TRUE(diff.per_step);
  EXPECT_EQ(diff.a.units, 3);
  EXPECT_EQ(diff.a.launches, 5);
  EXPECT_EQ(diff.b.launches, 1);
  EXPECT_NEAR(diff.a.kernel, 5419517.0 / 3, 1);
  EXPECT_NEAR(diff.b.kernel, 991515.0 / 3, 1);
  ASSERT_EQ(diff.items.size(), 1u);
  EXPECT_EQ(diff.items[0].match, Match::kOpClass);
  EXPECT_EQ(diff.items[0].a.kernels.size(), 5u);
  EXPECT_TRUE(diff.items[0].certain);
  // The categories of a step add up to it, on both sides.
  for (const DiffTotals* side : {&diff.a, &diff.b}) {
    const StepTime& step = side->step;
    EXPECT_NEAR(
        static_cast<double>(step.duration_ns),
        static_cast<double>(step.kernel_ns + step.communication_ns + step.copy_ns + step.set_ns +
                            step.runtime_ns + step.data_loader_ns + step.cpu_ns + step.other_ns),
        10);
  }
}

TEST(Diff, TextFitsItsTerminal) {
  const Diff diff = diff_of(import("kineto_h200_fusion_before.json.gz"),
                            import("kineto_h200_fusion_after.json.gz"));
  for (int width : {80, 100, 140}) {
    const std::string text = render_diff(diff, Terminal(false, false, false, width));
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = text.find('\n', begin);
      EXPECT_LE(end - begin, static_cast<std::size_t>(width)) << text.substr(begin, end - begin);
      begin = end + 1;
    }
    EXPECT_NE(text.find("gone"), std::string::npos);
  }
}

TEST(Diff, DocumentsSayTheSame) {
  const Diff diff = diff_of(profile_of({diff_row("a,b", "aten::mm", "M=1", {100, 110})}),
                            profile_of({diff_row("a,b", "aten::mm", "M=1", {150})}));
  const Json json = to_json(diff);
  EXPECT_EQ(json["schema"].as_string(), "purlin.diff/1");
  const Json& item = json["items"].items()[0];
  EXPECT_EQ(item["change_ns"].as_double(), -60);
  double sum = 0;
  for (const Json::Member& cause : item["causes"].members()) sum += cause.value.as_double();
  EXPECT_NEAR(sum, -60, 0.01);
  EXPECT_EQ(item["a"]["count"].as_int(), 2);
  const std::string csv = to_csv(diff);
  EXPECT_NE(csv.find("\"a,b\""), std::string::npos);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 2);
}

}  // namespace
}  // namespace purlin::analyze
