// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/supplement.h"

#include "analyze/report/report.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// AlexNet's first convolution as HolisticTraceAnalysis' sample (MIT) has it: counters, no times, no
// shapes.
Profile alexnet() {
  Profile profile;
  DeviceInfo gpu;
  gpu.name = "NVIDIA A100-PG509-200";
  gpu.arch = "sm_80";
  gpu.kind = "gpu";
  gpu.compute_units = 108;
  profile.environment.devices = {gpu};
  KernelRow row;
  row.name = "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false>(int)";
  row.counters = {{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 9'119'334'400, 1},
                  {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 24'780'800, 1}};
  profile.kernels = {row};
  return profile;
}

constexpr char kConv1[] =
    "implicit_convolve=conv,f32,N=128,C=3,H=224,W=224,K=64,R=11,S=11,P=55,Q=55";

TEST(Supplement, CountersAndModelBesideOneAnother) {
  Profile profile = alexnet();
  ASSERT_TRUE(give_shape(profile, kConv1).is_ok());
  const Report report = build_report(profile, GroupBy::kKernel);
  ASSERT_EQ(report.kernels.size(), 1u);
  const Roof& roof = report.kernels[0].roof;
  EXPECT_NEAR(roof.flops / 1e9, 18.26, 0.005);
  EXPECT_EQ(roof.flops_from, Provenance::kCounter);
  EXPECT_NEAR(roof.model_flops / 1e9, 17.99, 0.005);
}

TEST(Supplement, WhatWasRecordedStays) {
  Profile profile = alexnet();
  ASSERT_TRUE(give_shape(profile, kConv1).is_ok());
  EXPECT_EQ(give_shape(profile, "convolve=gemm,f32,M=1,N=1,K=1").code(), Code::kNotFound);
  EXPECT_EQ(profile.kernels[0].op, "conv");
  EXPECT_EQ(name_gpu(profile, "H200").code(), Code::kNotFound);
}

TEST(Supplement, AFileWithoutStallsIsNamed) {
  Profile profile = alexnet(), samples = alexnet();
  EXPECT_EQ(give_stalls(profile, samples).code(), Code::kInvalid);
  EXPECT_EQ(profile.kernels[0].counters.size(), 2u);
  samples.kernels[0].counters = {{"smsp__pcsamp_warps_issue_stalled_barrier", 9, 1}};
  EXPECT_TRUE(give_stalls(profile, samples).is_ok());
  EXPECT_EQ(profile.kernels[0].counters.size(), 3u);
}

TEST(Supplement, TextsThatMeanNothing) {
  Profile profile = alexnet();
  for (const char* text : {"", "convolve", "=conv,f32,N=1", "convolve=conv,f32", "convolve=conv",
                           "convolve=conv,f32,N", "convolve=conv,f31,N=128",
                           "convolve=conv,f32,N=1", "convolve=dance,f32,n=1"})
    EXPECT_EQ(give_shape(profile, text).code(), Code::kInvalid) << text;
  EXPECT_EQ(give_shape(profile, "nothing=copy,f32,n=1").code(), Code::kNotFound);
  const Status status = name_gpu(profile, "Voodoo 2");
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("V100 SXM2"), std::string::npos);
}

TEST(Supplement, AGpuThatTheTraceDoesNotName) {
  Profile profile = alexnet();
  profile.environment.devices.clear();
  profile.kernels[0].launch.grid = {1000, 1, 1};
  profile.kernels[0].launch.block = {256, 1, 1};
  profile.kernels[0].registers = 64;
  ASSERT_TRUE(name_gpu(profile, "V100-SXM2").is_ok());
  const Report report = build_report(profile, GroupBy::kKernel);
  EXPECT_EQ(report.kernels[0].device, "V100 SXM2");
  EXPECT_DOUBLE_EQ(report.kernels[0].roof.occupancy_theoretical, 0.5);
  ASSERT_EQ(report.ceilings.size(), 1u);
  EXPECT_NEAR(report.ceilings[0].compute_for("f16", true)->peak / 1e12, 125, 1);
}

}  // namespace
}  // namespace purlin::analyze
