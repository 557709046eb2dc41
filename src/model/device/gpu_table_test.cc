// SPDX-License-Identifier: Apache-2.0
#include "model/device/gpu_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace purlin {
namespace {

std::string name_of(const char* device, std::uint64_t memory = 0) {
  const GpuModel* model = find_gpu(device, memory);
  return model == nullptr ? "" : std::string(model->name);
}

const GpuRate& rate_of(const GpuModel& model, std::string_view dtype, bool tensor) {
  for (const GpuRate& rate : model.rates)
    if (rate.dtype == dtype && rate.tensor == tensor) return rate;
  static const GpuRate kNone;
  return kNone;
}

TEST(GpuTable, UnitsTimesRateTimesClockIsTheSheet) {
  EXPECT_GE(gpu_table().size(), 25u);
  for (const GpuModel& model : gpu_table()) {
    for (const GpuRate& rate : model.rates) {
      if (rate.sheet_tera == 0) continue;
      const double identity = model.peak(rate, model.sheet_clock(rate)) / 1e12;
      EXPECT_NEAR(rate.sheet_tera / identity, 1, 0.02)
          << model.name << " " << rate.dtype << (rate.tensor ? " tensor" : "");
      // The trap of sheets that print figures with sparsity.
      EXPECT_GT(std::abs(rate.sheet_tera / identity - 2), 0.5) << model.name << " " << rate.dtype;
    }
  }
}

TEST(GpuTable, RowsAreDistinctAndComplete) {
  std::set<std::string_view> names;
  for (const GpuModel& model : gpu_table()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_GT(model.dram_gbs, 0) << model.name;
    EXPECT_LT(model.dram_gbs, 10'000) << model.name;  // B/s written as GB/s, and the like
    EXPECT_GT(rate_of(model, "f32", false).per_clock, 0) << model.name;
    const bool no_fp64 = model.arch == "xe_hpg";
    EXPECT_EQ(rate_of(model, "f64", false).per_clock > 0, !no_fp64) << model.name;
    EXPECT_LE(model.tensor_mhz, model.boost_mhz) << model.name;
    std::set<std::pair<std::string_view, bool>> rates;
    for (const GpuRate& rate : model.rates)
      EXPECT_TRUE(rates.insert({rate.dtype, rate.tensor}).second) << model.name << rate.dtype;
    const bool cut = model.name == "H800 SXM5" || model.name == "H20";
    const std::span<const GpuRate> arch =
        cut ? std::span<const GpuRate>() : rates_of_arch(model.arch);
    for (const GpuRate& rate : arch)  // an architecture's rates hold for its SKUs
      EXPECT_EQ(rate_of(model, rate.dtype, rate.tensor).per_clock, rate.per_clock)
          << model.name << " " << rate.dtype;
  }
}

TEST(GpuTable, VariantsAreNotTheirNamesakes) {
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 4090 D"), "RTX 4090 D");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 4070 Ti SUPER"), "RTX 4070 Ti SUPER");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 5070 Ti"), "RTX 5070 Ti");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 5070 Laptop GPU"), "");
  EXPECT_EQ(name_of("NVIDIA A800-SXM4-80GB"), "A100 SXM4 80GB");
  EXPECT_EQ(name_of("NVIDIA H20"), "H20");
  EXPECT_EQ(name_of("AMD Radeon RX 7900 XT"), "Radeon RX 7900 XT");
  EXPECT_EQ(name_of("AMD Radeon RX 7900 XTX"), "Radeon RX 7900 XTX");
  EXPECT_EQ(name_of("AMD Radeon RX 9070"), "Radeon RX 9070");
  EXPECT_EQ(name_of("Intel(R) Arc(TM) Pro B60 Graphics"), "Arc Pro B60");
  EXPECT_EQ(name_of("NVIDIA RTX PRO 4500 Blackwell"), "RTX PRO 4500 Blackwell");
}

TEST(GpuTable, ADeviceIsFoundByTheNameItsDriverGives) {
  EXPECT_EQ(name_of("NVIDIA H200"), "H200 SXM");
  EXPECT_EQ(name_of("Orin", 65'000'000'000), "Jetson AGX Orin 64GB");
  EXPECT_EQ(name_of("Orin (nvgpu)", 32'000'000'000), "Jetson AGX Orin 32GB");
  EXPECT_EQ(name_of("NVIDIA H200 NVL"), "H200 NVL");
  EXPECT_EQ(name_of("NVIDIA H100 80GB HBM3"), "H100 SXM5");
  EXPECT_EQ(name_of("NVIDIA H100 PCIe"), "H100 PCIe");
  EXPECT_EQ(name_of("NVIDIA H100 NVL"), "H100 NVL");
  EXPECT_EQ(name_of("NVIDIA GH200 480GB", 102'000'000'000), "GH200 96GB");
  EXPECT_EQ(name_of("NVIDIA GH200 144G HBM3e"), "GH200 144GB");
  EXPECT_EQ(name_of("Tesla V100-SXM2-16GB"), "V100 SXM2");
  EXPECT_EQ(name_of("Tesla V100-DGXS-32GB"), "V100 SXM2");
  EXPECT_EQ(name_of("Tesla V100-PCIE-32GB"), "V100 PCIe");
  EXPECT_EQ(name_of("Tesla V100S-PCIE-32GB"), "V100S PCIe");
  EXPECT_EQ(name_of("Tesla P100-PCIE-16GB"), "P100 PCIe");
  EXPECT_EQ(name_of("Tesla T4"), "T4");
  EXPECT_EQ(name_of("NVIDIA A100-SXM4-40GB"), "A100 SXM4 40GB");
  EXPECT_EQ(name_of("NVIDIA A100-SXM4-80GB"), "A100 SXM4 80GB");
  EXPECT_EQ(name_of("NVIDIA A100 80GB PCIe"), "A100 PCIe 80GB");
  EXPECT_EQ(name_of("NVIDIA A100-PCIE-40GB"), "A100 PCIe 40GB");
  EXPECT_EQ(name_of("NVIDIA A100-PG509-200", 42'505'273'344), "A100 SXM4 40GB");
  EXPECT_EQ(name_of("NVIDIA A100", 85'000'000'000), "A100 SXM4 80GB");
  EXPECT_EQ(name_of("NVIDIA A10G"), "A10G");
  EXPECT_EQ(name_of("NVIDIA A10"), "A10");
  EXPECT_EQ(name_of("NVIDIA RTX A6000"), "RTX A6000");
  EXPECT_EQ(name_of("NVIDIA RTX 6000 Ada Generation"), "RTX 6000 Ada");
  EXPECT_EQ(name_of("GeForce RTX 2080 Ti"), "RTX 2080 Ti");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 3090"), "RTX 3090");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 5090"), "RTX 5090");
  EXPECT_EQ(name_of("NVIDIA TITAN RTX"), "TITAN RTX");
  EXPECT_EQ(name_of("NVIDIA L40S"), "L40S");
  EXPECT_EQ(name_of("NVIDIA B200"), "B200");
  EXPECT_EQ(name_of("NVIDIA GB200"), "GB200");
  EXPECT_EQ(name_of("NVIDIA B300 SXM6 AC"), "B300");
  EXPECT_EQ(name_of("NVIDIA GB300"), "GB300");
  EXPECT_EQ(name_of("NVIDIA GB10"), "GB10");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 5080"), "RTX 5080");
  EXPECT_EQ(name_of("NVIDIA RTX PRO 6000 Blackwell Workstation Edition"), "RTX PRO 6000 Blackwell");
  EXPECT_EQ(name_of("AMD Instinct MI300X VF"), "MI300X");
  EXPECT_EQ(name_of("AMD Instinct MI300A"), "MI300A");
  EXPECT_EQ(name_of("AMD Instinct MI355X"), "MI355X");
  EXPECT_EQ(name_of("AMD Radeon AI PRO R9700"), "Radeon AI PRO R9700");
  EXPECT_EQ(name_of("AMD Radeon RX 9070 XT"), "Radeon RX 9070 XT");
  EXPECT_EQ(name_of("Intel(R) Arc(TM) B580 Graphics"), "Arc B580");
  EXPECT_EQ(name_of("Intel(R) Arc(TM) A770 Graphics"), "Arc A770");
  EXPECT_EQ(name_of("Intel(R) Data Center GPU Max 1550"), "Max 1550 (one stack)");
  EXPECT_EQ(name_of("AMD Instinct MI300X"), "MI300X");
  EXPECT_EQ(name_of("AMD Instinct MI250X"), "MI250X (one GCD)");
}

TEST(GpuTable, EachRowIsFoundByItsOwnName) {
  for (const GpuModel& model : gpu_table())
    EXPECT_EQ(find_gpu(model.name, static_cast<std::uint64_t>(model.memory_gb * 1e9)), &model)
        << model.name;
}

TEST(GpuTable, ANamesakeIsNotTheDevice) {
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 4090 Laptop GPU"), "");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 3090 Ti"), "");
  EXPECT_EQ(name_of("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), "");
  EXPECT_EQ(name_of("NVIDIA GeForce RTX 2080"), "");
  EXPECT_EQ(name_of("GRID T4-16Q"), "");
  EXPECT_EQ(name_of("pthread-Intel(R) Xeon(R) Platinum 8481C"), "");
  EXPECT_EQ(name_of(""), "");
}

TEST(GpuTable, HopperPeaksAtItsTwoClocks) {
  const GpuModel& h200 = *find_gpu("NVIDIA H200");
  const GpuRate& bf16 = rate_of(h200, "bf16", true);
  EXPECT_NEAR(h200.peak(bf16, 1830) / 1e12, 989.4, 0.5);
  EXPECT_NEAR(h200.peak(bf16, 1980) / 1e12, 1070.5, 0.5);  // at the clock seen without load
  EXPECT_NEAR(h200.peak(rate_of(h200, "f32", false), 1980) / 1e12, 66.9, 0.1);
}

}  // namespace
}  // namespace purlin
