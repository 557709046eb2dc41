// SPDX-License-Identifier: Apache-2.0
// GpuModel: a GPU's figures in its maker's sheet, and the arithmetic that must reproduce them.
//
// Sheets print figures with sparsity, per board instead of per device, and at clocks they do not
// name; tables copied from them are wrong by exactly 2x in many places. So each rate is stored
// twice: as FLOP per clock and SM, and as the sheet's dense figure. The test checks that SMs x rate
// x clock is within 2 % of the sheet and that no figure is twice that. Immutable; pure functions.
#pragma once

#include "model/device/device.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace purlin {

struct GpuRate {
  std::string_view dtype;     // "f32", "bf16", "tf32", "f8", "i8", …
  bool tensor = false;        // By the tensor cores (matrix cores); f16 accumulates in f32.
  int per_clock = 0;          // Dense FLOP per clock and SM (CU); an FMA is 2 FLOP.
  double sheet_tera = 0;      // The sheet's dense TFLOP/s (TOP/s); 0 = not in the sheet.
  bool tensor_clock = false;  // The sheet's figure is at tensor_mhz.
};

struct GpuModel {
  std::string_view name;   // "H100 SXM 80GB"
  std::string_view names;  // words drivers use, alternatives by '|': "h100 hbm3|h100 sxm5"
  std::string_view arch;   // "sm_90", "gfx942"
  int units = 0;           // SMs or CUs
  double boost_mhz = 0;    // of the sheet's vector figures
  double tensor_mhz = 0;   // of its tensor figures
  double dram_gbs = 0;     // 1e9 B/s
  double l2_mib = 0;       // nominal
  double memory_gb = 0;    // tells variants of one name apart
  std::span<const GpuRate> rates;

  // FLOP/s at `mhz`.
  double peak(const GpuRate& rate, double mhz) const {
    return static_cast<double>(units) * rate.per_clock * mhz * 1e6;
  }
  double sheet_clock(const GpuRate& rate) const {
    return rate.tensor_clock ? tensor_mhz : boost_mhz;
  }
};

std::span<const GpuModel> gpu_table();

// By the name a driver or a trace gives: "NVIDIA H200", "Tesla V100-SXM2-16GB",
// "NVIDIA A100-SXM4-80GB", "AMD Instinct MI300X". Memory, where known, decides between variants.
// nullptr for what the table lacks; a laptop's GPU or a MIG slice is not its namesake.
const GpuModel* find_gpu(std::string_view device_name, std::uint64_t memory_bytes = 0);
// SMs, CUs or Xe cores: as recorded, else the table's by the name; 0 = not known.
int units_of(const DeviceInfo& device);

// FP32 lanes of an SM, by architecture ("sm_86"): 128; 0 where unknown.
int fp32_lanes(std::string_view arch);
// Rates that every chip of the architecture has, in all its SKUs. Empty where SKUs differ.
std::span<const GpuRate> rates_of_arch(std::string_view arch);

}  // namespace purlin
