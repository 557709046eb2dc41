// SPDX-License-Identifier: Apache-2.0
// The ceilings of a device without measured ones.
#include "analyze/roofline/roofline.h"
#include "model/device/gpu_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kMinOfCompute = 0.75, kMinOfMemory = 0.5;  // of the sheet

std::string ceiling_name(const GpuRate& rate) {
  return std::string(rate.dtype) + (rate.tensor ? " tensor" : "");
}

void from_table(Ceilings& out, const GpuModel& model, int units) {
  std::string source = "table";
  // A driver that shows fewer SMs than the sheet has shut some of them off.
  const double share = units > 0 ? static_cast<double>(units) / model.units : 1;
  if (share != 1) source = fmt::format("table, {} of {} SMs", units, model.units);
  for (const GpuRate& rate : model.rates) {
    const double mhz = model.sheet_clock(rate);
    out.compute.push_back({ceiling_name(rate), share * model.peak(rate, mhz),
                           fmt::format("{} at {:.0f} MHz", source, mhz), mhz, 0});
  }
  out.memory.push_back({"dram", model.dram_gbs * 1e9, "table", 0, 0});
}

void from_attributes(Ceilings& out, const DeviceInfo& device) {
  if (device.compute_units > 0 && device.clock_mhz > 0)
    for (const GpuRate& rate : rates_of_arch(device.arch))
      out.compute.push_back(
          {ceiling_name(rate),
           static_cast<double>(device.compute_units) * rate.per_clock * device.clock_mhz * 1e6,
           fmt::format("device attributes at {:.0f} MHz", device.clock_mhz), device.clock_mhz, 0});
  // Two transfers a clock.
  const double by_bus = 2 * device.memory_clock_mhz * 1e6 * device.memory_bus_bits / 8;
  const double bandwidth = device.memory_bytes_per_s > 0 ? device.memory_bytes_per_s : by_bus;
  if (bandwidth > 0) out.memory.push_back({"dram", bandwidth, "device attributes", 0, 0});
}

// A micro-benchmark that stays below the sheet says what is attainable; one far below it has missed
// the unit, as mma.sync does on sm_90, and the sheet stands.
void replace(std::vector<Ceiling>& list, const std::vector<Ceiling>& measured, double least) {
  for (const Ceiling& ceiling : measured) {
    const auto own = std::find_if(list.begin(), list.end(),
                                  [&](const Ceiling& one) { return one.name == ceiling.name; });
    if (own == list.end()) {
      list.push_back(ceiling);
    } else if (ceiling.peak > least * own->peak) {
      // At the clock of the measurement, where both follow it.
      double sheet = own->peak;
      if (own->clock_mhz > 0 && ceiling.clock_mhz > 0) sheet *= ceiling.clock_mhz / own->clock_mhz;
      *own = ceiling;
      own->sheet = sheet;
    }
  }
}

}  // namespace

Ceilings build_ceilings(const DeviceInfo& device, const Ceilings* measured) {
  Ceilings out;
  out.device = device.name;
  if (const GpuModel* model = find_gpu(device.name, device.memory_bytes); model != nullptr) {
    from_table(out, *model, device.compute_units);
    out.l2_bytes = model->l2_mib * 1048576;
  } else {
    from_attributes(out, device);
  }
  if (device.l2_bytes > 0) out.l2_bytes = static_cast<double>(device.l2_bytes);
  if (measured != nullptr) {
    replace(out.compute, measured->compute, kMinOfCompute);
    replace(out.memory, measured->memory, kMinOfMemory);
  }
  return out;
}

}  // namespace purlin::analyze
