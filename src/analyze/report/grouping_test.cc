// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/report.h"
#include "analyze/report/testing.h"
#include "base/random.h"
#include "profile/format/merge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>

namespace purlin::analyze {
namespace {

constexpr GroupBy kAllGroupings[] = {GroupBy::kKernel, GroupBy::kShape, GroupBy::kLaunch,
                                     GroupBy::kOp, GroupBy::kOpClass};

TEST(ReportGrouping, GroupsByShapeOpAndClass) {
  Profile profile;
  const auto add = [&](const char* name, const char* op, const char* shape, double ns) {
    KernelRow row = row_of(name, 8, 0, ns, 10);
    row.op = op, row.shape = shape, row.dtype = "bf16";
    profile.kernels.push_back(row);
  };
  add("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "aten::mm", "M=1,N=2,K=3", 900);
  add("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT", "aten::mm", "M=4,N=5,K=6", 800);
  add("void splitKreduce_kernel<float>(float)", "aten::mm", "M=4,N=5,K=6", 300);
  add("my_kernel", "aten::_softmax", "rows=1,cols=2", 200);
  add("their_kernel", "", "", 100);

  const Report by_shape = build_report(profile, GroupBy::kShape);
  ASSERT_EQ(by_shape.kernels.size(), 5u);
  EXPECT_EQ(by_shape.kernels[0].shape, "M=1,N=2,K=3");
  EXPECT_EQ(build_report(profile, GroupBy::kKernel).kernels[0].shape, "");

  const Report by_op = build_report(profile, GroupBy::kOp);
  ASSERT_EQ(by_op.kernels.size(), 3u);
  EXPECT_EQ(by_op.kernels[0].label, "aten::mm");
  EXPECT_EQ(by_op.kernels[0].kernels, 2);
  EXPECT_EQ(by_op.kernels[0].name.op_class, "gemm");
  EXPECT_EQ(by_op.kernels[2].label, "(no op known)");

  const Report by_class = build_report(profile, GroupBy::kOpClass);
  ASSERT_EQ(by_class.kernels.size(), 3u);
  EXPECT_EQ(by_class.kernels[0].label, "gemm");
  EXPECT_EQ(by_class.kernels[1].label, "softmax");  // the op says what my_kernel does
  EXPECT_EQ(by_class.kernels[1].kernels, 1);
}

TEST(ReportGrouping, BuildsAreNotMixed) {
  Profile profile;
  profile.environment.build = "v1, v2";
  profile.kernels = {row_of("a", 1, 0, 100, 3), row_of("a", 1, 0, 300, 3)};
  profile.kernels[0].build = "v1";
  profile.kernels[1].build = "v2";
  for (GroupBy by : kAllGroupings) {
    const Report report = build_report(profile, by);
    ASSERT_EQ(report.kernels.size(), 2u) << to_text(by);
    EXPECT_EQ(report.kernels[0].build, "v2");
  }
}

// A profile as some node of a run might record it. Times are whole, so that sums are exact.
Profile random_profile(Random& random) {
  Profile profile;
  DeviceInfo gpu;
  gpu.id = "cuda:0";
  gpu.name = random.below(2) == 0 ? "NVIDIA H200" : "NVIDIA A100";
  profile.environment.devices = {gpu};
  profile.environment.build = random.below(2) == 0 ? "v1" : "v2";
  const std::size_t rows = 1 + random.below(6);
  for (std::size_t i = 0; i < rows; ++i) {
    KernelRow row;
    row.name = std::vector<std::string>{"gemm", "softmax", "mine"}[random.below(3)];
    row.op = std::vector<std::string>{"", "aten::mm", "aten::add"}[random.below(3)];
    row.shape = std::vector<std::string>{"", "n=4"}[random.below(2)];
    row.launch.grid[0] = static_cast<std::uint32_t>(1 + random.below(2));
    row.first_ns = static_cast<std::int64_t>(1 + random.below(1000));
    row.last_ns = row.first_ns + 100;
    for (std::size_t launch = 1 + random.below(20); launch > 0; --launch)
      row.duration.add(static_cast<double>(1 + random.below(100'000)));
    profile.kernels.push_back(row);
  }
  return profile;
}

// The rows of a report, without the order of equally heavy ones.
std::multiset<std::string> rows_of(const Report& report) {
  std::multiset<std::string> out;
  for (const KernelStat& kernel : report.kernels)
    out.insert(fmt::format(
        "{} {} {} {} {} {} {} {} {} {} {} {} {} {}", kernel.name.full, kernel.device, kernel.build,
        kernel.op, kernel.shape, kernel.duration.count(), kernel.duration.total_ns(),
        kernel.duration.quantile(0.5), kernel.duration.quantile(0.95), kernel.share,
        kernel.first_ns, kernel.last_ns, kernel.launch_shapes, kernel.kernels));
  return out;
}

TEST(ReportGrouping, MergingIsAssociativeAndCommutativeAndCountsNothingTwice) {
  Random random(7);
  for (int round = 0; round < 40; ++round) {
    const Profile a = random_profile(random), b = random_profile(random),
                  c = random_profile(random);
    const auto merged = [](std::initializer_list<const Profile*> parts) {
      Profile out;
      profile::Merger merger(out);
      for (const Profile* part : parts) merger.add(*part);
      merger.finish();
      return out;
    };
    const Profile bc = merged({&b, &c});
    const Profile orders[] = {merged({&a, &b, &c}), merged({&c, &b, &a}), merged({&a, &bc}),
                              merged({&bc, &a})};
    double total = 0, count = 0;
    for (const Profile* part : {&a, &b, &c})
      for (const KernelRow& row : part->kernels)
        total += row.duration.total_ns(), count += row.duration.count();
    for (GroupBy by : kAllGroupings) {
      const auto expected = rows_of(build_report(orders[0], by));
      for (const Profile& order : orders) {
        const Report report = build_report(order, by);
        EXPECT_EQ(rows_of(report), expected) << to_text(by);
        double sum = 0, launches = 0, share = 0;
        for (const KernelStat& kernel : report.kernels) {
          sum += kernel.duration.total_ns();
          launches += kernel.duration.count();
          share += kernel.share;
        }
        EXPECT_EQ(sum, total) << to_text(by);
        EXPECT_EQ(launches, count) << to_text(by);
        EXPECT_NEAR(share, 1, 1e-12) << to_text(by);
      }
    }
  }
}

}  // namespace
}  // namespace purlin::analyze
