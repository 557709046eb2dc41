// SPDX-License-Identifier: Apache-2.0
#include "analyze/roofline/op_parts.h"

#include "analyze/timeline/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr const char* kUpdate =
    "void at::native::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>>(int)";

// An op of 2 x 300 blocks and 200 more, twice; and an op of one launch.
TEST(OpParts, AnUpdateIsCutIntoLaunches) {
  TimelineBuilder builder;
  std::int64_t at = 0;
  const auto launch = [&](const char* kernel, std::uint32_t grid, std::uint32_t op) {
    const std::uint32_t call = builder.launch(at, 100);
    builder.profile.timeline.calls[call].op = op;
    builder.kernel(kernel, at + 200, 1'000, call).row = builder.kernel_row(kernel, grid);
    at += 2'000;
  };
  for (std::uint32_t op = 0; op < 2; ++op) {
    launch(kUpdate, 300, op);
    launch(kUpdate, 300, op);
    launch(kUpdate, 200, op);
    launch("scale", 64, op);
    launch("scale", 64, op);
  }
  launch(kUpdate, 50, 2);
  builder.kernel(kUpdate, at, 1'000).row = builder.kernel_row(kUpdate, 7);  // of no known call
  const Profile& profile = builder.profile;
  const std::vector<double> parts = parts_of_ops(profile);
  ASSERT_EQ(parts.size(), profile.kernels.size());
  const auto part = [&](const char* kernel, std::uint32_t grid) {
    return parts[builder.kernel_row(kernel, grid)];
  };
  EXPECT_DOUBLE_EQ(part(kUpdate, 300), 300.0 / 800);
  EXPECT_DOUBLE_EQ(part(kUpdate, 200), 200.0 / 800);
  EXPECT_DOUBLE_EQ(part(kUpdate, 50), 1);
  EXPECT_DOUBLE_EQ(part(kUpdate, 7), 1);
  EXPECT_DOUBLE_EQ(part("scale", 64), 1);  // each of them may do all of an op's work
}

TEST(OpParts, NoTimelineAndNumbersOutOfRange) {
  TimelineBuilder builder;
  builder.kernel_row(kUpdate, 300);
  EXPECT_EQ(parts_of_ops(builder.profile), std::vector<double>{1});
  builder.kernel(kUpdate, 0, 1'000, 99).row = 77;
  EXPECT_EQ(parts_of_ops(builder.profile).front(), 1);
}

}  // namespace
}  // namespace purlin::analyze
