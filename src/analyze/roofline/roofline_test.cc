// SPDX-License-Identifier: Apache-2.0
#include "analyze/roofline/roofline.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

DeviceInfo device(const char* name, const char* arch, int units) {
  DeviceInfo info;
  info.name = name;
  info.arch = arch;
  info.kind = "gpu";
  info.compute_units = units;
  return info;
}
DeviceInfo h200_device() { return device("NVIDIA H200", "sm_90", 132); }
DeviceInfo a100() { return device("NVIDIA A100-SXM4-40GB", "sm_80", 108); }

struct RowText {
  const char *name, *op, *shape, *dtype;
};

KernelRow row(const RowText& text, double ns, std::uint32_t blocks = 10'000, int launches = 10) {
  KernelRow out;
  out.name = text.name;
  out.op = text.op;
  out.shape = text.shape;
  out.dtype = text.dtype;
  out.launch.grid = {blocks, 1, 1};
  out.launch.block = {256, 1, 1};
  out.registers = 32;
  for (int i = 0; i < launches; ++i) out.duration.add(ns);
  return out;
}

Roof roof_of(const std::vector<KernelRow>& rows, const DeviceInfo& on,
             const Ceilings* measured = nullptr) {
  const Ceilings ceilings = build_ceilings(on, measured);
  RoofSum sum(on, ceilings);
  for (const KernelRow& one : rows) sum.add(one, describe_kernel(one.name));
  return sum.roof();
}

const RowText kGemmName = {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT", "aten::mm",
                           "M=4096,N=4096,K=4096", "bf16"};
const RowText kSgemm = {"ampere_sgemm_128x64_tn", "aten::mm", "M=4096,N=4096,K=4096", "f32"};
const RowText kAdd = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add"
    "<float>, std::array<char*, 3ul> >(int)",
    "aten::add", "n=268435456,inputs=2", "f32"};

TEST(Ceilings, RidgeOfAnH100) {
  const Ceilings c = build_ceilings(device("NVIDIA H100 80GB HBM3", "sm_90", 132));
  const double peak = c.compute_for("f16", true)->peak, bandwidth = c.memory_for("dram")->peak;
  EXPECT_NEAR(peak / bandwidth, 295, 1);          // FLOP/B
  EXPECT_NEAR(100 * bandwidth / 1e12, 335, 0.1);  // attainable at 100 FLOP/B
  EXPECT_EQ(c.compute_for("f16", true)->provenance, "table at 1830 MHz");
}

TEST(Ceilings, FromAttributesWhereTheTableHasNone) {
  DeviceInfo unknown = device("NVIDIA Prototype", "sm_90", 100);
  unknown.clock_mhz = 2000;
  unknown.memory_clock_mhz = 3000;
  unknown.memory_bus_bits = 5120;
  const Ceilings c = build_ceilings(unknown);
  EXPECT_DOUBLE_EQ(c.compute_for("bf16", true)->peak, 100.0 * 4096 * 2000e6);
  EXPECT_DOUBLE_EQ(c.memory_for("dram")->peak, 2 * 3000e6 * 640);
  EXPECT_EQ(c.memory_for("dram")->provenance, "device attributes");
  unknown.memory_bytes_per_s = 1.5e12;  // as a recording says
  EXPECT_DOUBLE_EQ(build_ceilings(unknown).memory_for("dram")->peak, 1.5e12);
  unknown.arch = "sm_86";  // its SKUs differ in their tensor rates
  EXPECT_EQ(build_ceilings(unknown).compute.size(), 4u);
  EXPECT_EQ(build_ceilings(unknown).compute_for("bf16", true)->name, "bf16");
  unknown.arch = "sm_87";
  EXPECT_DOUBLE_EQ(build_ceilings(unknown).compute_for("f16", true)->peak, 100.0 * 2048 * 2000e6);
  EXPECT_TRUE(build_ceilings(DeviceInfo{}).empty());
}

TEST(Ceilings, FewerUnitsThanTheSheetHave) {
  const Ceilings c = build_ceilings(device("NVIDIA H200", "sm_90", 66));
  EXPECT_NEAR(c.compute_for("bf16", true)->peak / 1e12, 494.7, 0.5);
  EXPECT_EQ(c.compute_for("bf16", true)->provenance, "table, 66 of 132 SMs at 1830 MHz");
}

TEST(Ceilings, MeasuredOnesTakePrecedenceUnlessTheyMissedTheUnit) {
  Ceilings measured;
  measured.memory = {{"dram", 4.3e12, "measured", 0, 4.2e12}, {"l2", 9e12, "measured", 0, 8.9e12}};
  measured.compute = {{"bf16 tensor", 800e12, "measured", 1830, 790e12},
                      {"f8 tensor", 1200e12, "measured", 1830, 1190e12}};
  const Ceilings c = build_ceilings(h200_device(), &measured);
  EXPECT_EQ(c.memory_for("dram")->provenance, "measured");
  EXPECT_EQ(c.memory_for("dram")->peak, 4.3e12);
  EXPECT_NE(c.memory_for("l2"), nullptr);
  EXPECT_EQ(c.compute_for("bf16", true)->peak, 800e12);
  EXPECT_NEAR(c.compute_for("bf16", true)->sheet, 989.4e12, 1e12);
  EXPECT_EQ(c.compute_for("f8", true)->provenance, "table at 1830 MHz");
  // And back from their document.
  const auto again = ceilings_from_json(to_json(c));
  ASSERT_TRUE(again.is_ok());
  EXPECT_EQ(again->compute.size(), c.compute.size());
  // A kernel that beats the micro-benchmark, but not the sheet, is at its roof and believed.
  const double flops = 2.0 * 4096 * 4096 * 4096;
  const Roof roof = roof_of({row(kGemmName, flops / 900e12 * 1e9)}, h200_device(), &measured);
  EXPECT_EQ(roof.utilization, 1);
  EXPECT_NEAR(roof.flops_per_s, 900e12, 1e9);
  EXPECT_NE(roof.evidence.find("ceiling: measured"), std::string::npos);
  EXPECT_FALSE(ceilings_from_json(Json::object({{"device", "x"}})).is_ok());
}

TEST(Roofline, AProductIsComputeBound) {
  const double flops = 2.0 * 4096 * 4096 * 4096;
  const Roof roof = roof_of({row(kGemmName, flops / 800e12 * 1e9)}, h200_device());
  EXPECT_EQ(roof.bound, Bound::kCompute);
  EXPECT_EQ(roof.ceiling, "bf16 tensor");
  EXPECT_NEAR(roof.utilization, 800 / 989.4, 0.001);
  EXPECT_EQ(roof.grade, "good");
  EXPECT_EQ(roof.flops_from, Provenance::kShapeModel);
  EXPECT_DOUBLE_EQ(roof.flops, flops);
  EXPECT_NEAR(roof.flops_per_s, 800e12, 1e9);
  EXPECT_NEAR(roof.attainable_flops_per_s, 989.4e12, 1e12);
  EXPECT_EQ(roof.bound_from, "shape_model");
  EXPECT_DOUBLE_EQ(roof.occupancy_theoretical, 1);
}

TEST(Roofline, TheClockObservedCorrectsTheCeiling) {
  const double flops = 2.0 * 4096 * 4096 * 4096;
  KernelRow r = row(kGemmName, flops / 800e12 * 1e9);
  r.counters = {{"sm__cycles_elapsed.avg.per_second", 1620e6, 10}};
  const Roof roof = roof_of({r}, h200_device());
  EXPECT_NEAR(roof.utilization, 800 / (989.4 * 1620 / 1830), 0.001);
  EXPECT_EQ(roof.clock_mhz, 1620);
  EXPECT_NE(roof.evidence.find("corrected to 1620 MHz observed"), std::string::npos);
}

TEST(Roofline, AnSgemmAtThreeQuartersLeavesTensorCoresIdle) {
  const Roof roof = roof_of({row(kSgemm, 2.0 * 4096 * 4096 * 4096 / 15e12 * 1e9)}, a100());
  EXPECT_EQ(roof.bound, Bound::kCompute);
  EXPECT_EQ(roof.ceiling, "f32");
  EXPECT_NEAR(roof.utilization, 0.77, 0.005);
  EXPECT_NE(roof.evidence.find("tensor cores idle: 10 % of tf32 tensor"), std::string::npos)
      << roof.evidence;
}

TEST(Roofline, AnAdditionIsMemoryBound) {
  const double bytes = 12.0 * 268435456;
  Roof roof = roof_of({row(kAdd, bytes / 4e12 * 1e9)}, h200_device());
  EXPECT_EQ(roof.bound, Bound::kMemory);
  EXPECT_EQ(roof.ceiling, "dram");
  EXPECT_NEAR(roof.utilization, 4.0 / 4.8, 0.001);
  EXPECT_EQ(roof.grade, "good");
  // Twice the FLOP/s would buy nothing: what is attainable is bandwidth times intensity.
  EXPECT_NEAR(roof.attainable_flops_per_s, 4.8e12 * roof.intensity, 1e6);
  // Far from the roof it is still memory-bound, and wants work.
  roof = roof_of({row(kAdd, bytes / 1e12 * 1e9)}, h200_device());
  EXPECT_EQ(roof.bound, Bound::kMemory);
  EXPECT_EQ(roof.grade, "optimise");
}

TEST(Roofline, ATinyLaunchIsLatencyBound) {
  const Roof roof =
      roof_of({row({kAdd.name, "aten::add", "n=1024,inputs=2", "f32"}, 2'000, 4)}, h200_device());
  EXPECT_EQ(roof.bound, Bound::kLatency);
  EXPECT_EQ(roof.bound_from, "launch");
  EXPECT_NE(roof.evidence.find("fewer blocks than SMs"), std::string::npos);
  EXPECT_NE(roof.evidence.find("starting and draining"), std::string::npos);
}

TEST(Roofline, CountersComeFirstAndTheModelIsShownBesideThem) {
  KernelRow r = row({"void conv_kernel<float>(int)", "aten::cudnn_convolution",
                     "N=128,C=3,H=224,W=224,K=64,R=11,S=11,P=55,Q=55,stride=4,padding=2", "f32"},
                    2'000'000);
  r.counters = {{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 9'119'334'400, 10},
                {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 24'780'800, 10}};
  Roof roof = roof_of({r}, a100());
  EXPECT_NEAR(roof.flops / 1e9, 18.26, 0.005);
  EXPECT_EQ(roof.flops_from, Provenance::kCounter);
  EXPECT_NEAR(roof.model_flops / 1e9, 17.99, 0.005);
  EXPECT_EQ(roof.bytes_from, Provenance::kShapeModel);
  EXPECT_NE(roof.evidence.find("counters and shape model"), std::string::npos);
  // The same kernel without counters.
  r.counters.clear();
  roof = roof_of({r}, a100());
  EXPECT_EQ(roof.flops_from, Provenance::kShapeModel);
  EXPECT_NEAR(roof.flops / 1e9, 17.99, 0.005);
}

TEST(Roofline, CountersWithoutTimesAreShown) {
  KernelRow r = row({"conv", "", "", ""}, 0, 100, 0);
  r.counters = {{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 9'119'334'400, 1}};
  const Roof roof = roof_of({r}, a100());
  EXPECT_NEAR(roof.flops / 1e9, 18.24, 0.005);
  EXPECT_EQ(roof.utilization, 0);
}

TEST(Roofline, AModelAboveTheCeilingIsExplainedNotShown) {
  // FFT executes a ninth of what the direct algorithm would.
  const double flops = 57.3e9;
  Roof roof = roof_of({row({"ampere_scf_gemm_fft", "aten::cudnn_convolution",
                            "N=128,C=64,H=27,W=27,K=192,R=5,S=5,P=27,Q=27,padding=2", "f32"},
                           flops / 60e12 * 1e9)},
                      a100());
  EXPECT_NE(roof.evidence.find("the shape model's FLOPs would be"), std::string::npos);
  EXPECT_LE(roof.utilization, 1);
  EXPECT_EQ(roof.flops_per_s, 0);
  EXPECT_GT(roof.model_flops, 0);
  // Operands that are still in the L2 cache.
  const RowText small = {kAdd.name, "aten::add", "n=2097152,inputs=2", "f32"};
  roof = roof_of({row(small, 12.0 * 2097152 / 8e12 * 1e9 + 0, 2048)}, h200_device());
  EXPECT_EQ(roof.utilization, 0);
  EXPECT_NE(roof.evidence.find("come from a cache"), std::string::npos);
  // With the cache's bandwidth known, that is the roof.
  Ceilings measured;
  measured.memory = {{"l2", 10e12, "measured", 0, 9e12}};
  roof = roof_of({row(small, 12.0 * 2097152 / 8e12 * 1e9, 2048)}, h200_device(), &measured);
  EXPECT_EQ(roof.ceiling, "l2");
  EXPECT_NEAR(roof.utilization, 0.8, 0.01);
}

TEST(Roofline, RowsOfDifferentShapesAddUp) {
  const double flops = 2.0 * 4096 * 4096 * 4096;
  const RowText half = {kGemmName.name, "aten::mm", "M=4096,N=4096,K=2048", "bf16"};
  const Roof roof = roof_of(
      {row(kGemmName, flops / 800e12 * 1e9), row(half, flops / 2 / 400e12 * 1e9)}, h200_device());
  EXPECT_DOUBLE_EQ(roof.flops, 0.75 * flops);
  EXPECT_NEAR(roof.utilization, 600 / 989.4, 0.001);  // 1.5 F in two equal times
}

TEST(Roofline, WithoutWorkTheOpClassIsAPrior) {
  Roof roof = roof_of({row({kGemmName.name, "", "", ""}, 1e6)}, h200_device());
  EXPECT_EQ(roof.bound, Bound::kCompute);
  EXPECT_EQ(roof.bound_from, "op_class");
  EXPECT_EQ(roof.utilization, 0);
  roof = roof_of({row({kAdd.name, "", "", ""}, 1e6)}, h200_device());
  EXPECT_EQ(roof.bound, Bound::kMemory);
  roof = roof_of({row({"mystery", "", "", ""}, 1e6)}, h200_device());
  EXPECT_EQ(roof.bound, Bound::kUnknown);
  EXPECT_TRUE(roof.evidence.empty());
}

TEST(Roofline, IdleCountersMeanLatency) {
  KernelRow r = row({"mystery", "", "", ""}, 1e6);
  r.counters = {{"sm__throughput.avg.pct_of_peak_sustained_elapsed", 12, 10},
                {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 20, 10}};
  EXPECT_EQ(roof_of({r}, h200_device()).bound, Bound::kLatency);
  r.counters[1].value = 75;
  EXPECT_EQ(roof_of({r}, h200_device()).bound, Bound::kMemory);
  r.counters[0].value = 85;
  EXPECT_EQ(roof_of({r}, h200_device()).bound, Bound::kCompute);
  EXPECT_EQ(roof_of({r}, h200_device()).bound_from, "counter");
}

// Without FLOPs and bytes the recorder's own shares of peak are how near the roof it is.
TEST(Roofline, SharesOfPeakAreAUtilisation) {
  KernelRow r = row({"mystery", "", "", ""}, 1e6);
  r.counters = {{"sm__throughput.avg.pct_of_peak_sustained_elapsed", 12, 10},
                {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 61.84, 10}};
  const Roof roof = roof_of({r}, DeviceInfo{});
  EXPECT_NEAR(roof.utilization, 0.6184, 1e-9);
  EXPECT_EQ(roof.ceiling, "memory throughput");
  EXPECT_EQ(roof.evidence, "SMs 12 % busy, memory 62 %");
}

// A product that waits for its L1 cache: its FLOPs and DRAM bytes alone would say "at 2 %".
TEST(Roofline, WhatBindsIsWhatUtilisationIsOf) {
  KernelRow r = row(kGemmName, 1e7);
  r.counters = {{"dram__bytes.sum", 4e4, 10},
                {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 8, 10},
                {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 63, 10}};
  const Roof roof = roof_of({r}, h200_device());
  EXPECT_EQ(roof.bound, Bound::kMemory);
  EXPECT_EQ(roof.ceiling, "memory throughput");
  EXPECT_DOUBLE_EQ(roof.utilization, 0.63);
  EXPECT_EQ(roof.grade, "good");
}

TEST(Roofline, Bands) {
  EXPECT_EQ(grade_of(Bound::kMemory, 0.61), "good");
  EXPECT_EQ(grade_of(Bound::kMemory, 0.45), "ok");
  EXPECT_EQ(grade_of(Bound::kMemory, 0.29), "optimise");
  EXPECT_EQ(grade_of(Bound::kCompute, 0.81), "good");
  EXPECT_EQ(grade_of(Bound::kCompute, 0.6), "ok");
  EXPECT_EQ(grade_of(Bound::kCompute, 0.49), "optimise");
  EXPECT_EQ(grade_of(Bound::kCompute, 0), "");
}

TEST(Roofline, AnUnknownDeviceHasNoCeilings) {
  const Roof roof = roof_of({row(kGemmName, 1e6)}, DeviceInfo{});
  EXPECT_EQ(roof.utilization, 0);
  EXPECT_GT(roof.flops, 0);
  EXPECT_EQ(roof.occupancy_theoretical, 0);
}

}  // namespace
}  // namespace purlin::analyze
