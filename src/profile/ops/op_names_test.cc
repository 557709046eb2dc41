// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/op_names.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

KernelRow named(std::string op, std::string shape = "", std::string dtype = "") {
  Profile profile;
  profile.kernels.emplace_back();
  profile.kernels[0].op = std::move(op);
  profile.kernels[0].shape = std::move(shape);
  profile.kernels[0].dtype = std::move(dtype);
  name_ops(profile);
  return profile.kernels[0];
}

TEST(OpNames, TheInnermostOpWithAProblem) {
  const KernelRow row = named(
      "aten::linear, sizes = [[8, 64], [128, 64], [128]]\x1f"
      "aten::addmm, sizes = [[128], [8, 64], [64, 128], [], []]");
  EXPECT_EQ(row.op, "aten::addmm");
  EXPECT_EQ(row.shape, "M=8,N=128,K=64");
  EXPECT_EQ(named("aten::softmax, sizes = [[8, 128], [], []]\x1f"
                  "aten::_softmax, sizes = [[8, 128], [], []]")
                .op,
            "aten::_softmax");
}

TEST(OpNames, APartOfAnOpIsKnownByTheWhole) {
  const KernelRow row = named(
      "aten::cudnn_convolution, sizes = [[8, 3, 8, 8], [16, 3, 3, 3]]\x1f"
      "aten::cudnn_convolution_part, sizes = [[9]]");
  EXPECT_EQ(row.op, "aten::cudnn_convolution");
}

TEST(OpNames, WhatALibraryWasAskedForFillsTheGaps) {
  KernelRow row = named("aten::mm, sizes = [[8, 4], [4, 2]]", "M=8,N=2,K=4", "bf16");
  EXPECT_EQ(row.op, "aten::mm");
  EXPECT_EQ(row.shape, "M=8,N=2,K=4");
  EXPECT_EQ(row.dtype, "bf16");
  row = named("aten::mm", "M=8,N=2,K=4", "bf16");
  EXPECT_EQ(row.op, "aten::mm") << "without sizes";
  EXPECT_EQ(row.shape, "M=8,N=2,K=4");
  row = named("gemm", "B=3,M=8,N=2,K=4", "f32");
  EXPECT_EQ(row.op, "gemm");
  EXPECT_EQ(row.shape, "B=3,M=8,N=2,K=4");
  row = named("aten::lstm", "M=8,N=2,K=4", "f32");
  EXPECT_EQ(row.op, "gemm") << "a part of something whose problem is not known";
}

TEST(OpNames, NamesThatSayNothing) {
  EXPECT_EQ(named("my layer").op, "my layer");
  EXPECT_EQ(named("my layer").shape, "");
  EXPECT_EQ(named("").op, "");
  EXPECT_EQ(named("\x1f").op, "");
  EXPECT_EQ(named("aten::unheard_of, sizes = [[3]]").op, "aten::unheard_of");
}

TEST(OpNames, RangesOfFrameworksBecomeOpsAndEncloseCalls) {
  Profile profile;
  Timeline& timeline = profile.timeline;
  timeline.names = {"",
                    "aten::linear, sizes = [[8, 64], [128, 64], []]",
                    "cublasLtMatmul, shape = M=8,N=128,K=64, dtype = bf16, layout = nt, "
                    "ld = 64,64,128, epilogue = bias",
                    "step 3",
                    "cudaLaunchKernel",
                    "cublas, shape = nonsense"};
  const auto range = [&](std::uint32_t name, std::int64_t start, std::int64_t duration) {
    Range made;
    made.name = name;
    made.start_ns = start;
    made.duration_ns = duration;
    made.thread = 7;
    timeline.ranges.push_back(made);
  };
  range(2, 120, 50);  // as captured: inner ones end first
  range(1, 110, 80);
  range(3, 100, 100);
  range(5, 300, 10);
  Call call;
  call.name = 4;
  call.start_ns = 130;
  call.duration_ns = 5;
  call.thread = 7;
  timeline.calls.push_back(call);
  name_ops(profile);
  ASSERT_EQ(timeline.ops.size(), 2u);
  EXPECT_EQ(timeline.names[timeline.ops[0].name],
            "cublasLtMatmul, layout = nt, ld = 64,64,128, epilogue = bias");
  EXPECT_EQ(timeline.names[timeline.ops[0].shape], "M=8,N=128,K=64");
  EXPECT_EQ(timeline.names[timeline.ops[0].dtype], "bf16");
  EXPECT_EQ(timeline.ops[0].parent, 1u);
  EXPECT_EQ(timeline.names[timeline.ops[1].name], "aten::linear");
  EXPECT_EQ(timeline.names[timeline.ops[1].shape], "M=8,N=128,K=64");
  EXPECT_EQ(timeline.calls[0].op, 0u);
  ASSERT_EQ(timeline.ranges.size(), 2u);
  EXPECT_EQ(timeline.ranges[0].kind, RangeKind::kStep);
  EXPECT_EQ(timeline.ranges[1].kind, RangeKind::kUser);
}

}  // namespace
}  // namespace purlin::profile
