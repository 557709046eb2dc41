// SPDX-License-Identifier: Apache-2.0
// Measured ceilings as a text table.
#include "measure/ceilings/ceilings.h"
#include "model/device/gpu_table.h"

#include <fmt/format.h>

namespace purlin::measure {
namespace {

// The sheet's figure, in the unit of the measurement; 0 where the table has none.
double sheet_of(const GpuModel* model, const std::string& ceiling) {
  if (model == nullptr) return 0;
  if (ceiling == "dram") return model->dram_gbs * 1e9;
  for (const GpuRate& rate : model->rates)
    if (ceiling == std::string(rate.dtype) + (rate.tensor ? " tensor" : ""))
      return model->peak(rate, model->sheet_clock(rate));
  return 0;
}

std::string rate_text(double value, bool memory) {
  const char* unit = memory ? "B/s" : "FLOP/s";
  return value >= 1e12 ? fmt::format("{:.2f} T{}", value / 1e12, unit)
                       : fmt::format("{:.1f} G{}", value / 1e9, unit);
}

}  // namespace

std::string render_ceilings(const MeasuredCeilings& measured, const DeviceInfo& device,
                            const Terminal& terminal) {
  const GpuModel* model = find_gpu(device.name, device.memory_bytes);
  Table table;
  table.column("ceiling");
  table.column("by");
  table.column("best", Table::Align::kRight);
  table.column("median", Table::Align::kRight);
  table.column("MHz", Table::Align::kRight);
  table.column("of sheet", Table::Align::kRight);
  std::string problems;
  for (const CeilingMeasurement& m : measured.measurements) {
    if (!m.problem.empty()) {
      problems += fmt::format("  {} by {}: {}\n", m.ceiling, m.method,
                              m.problem.substr(0, m.problem.find('\n')));
      continue;
    }
    const bool memory = m.ceiling == "dram" || m.ceiling == "l2";
    const double sheet = sheet_of(model, m.ceiling);
    table.row({m.ceiling, m.method, rate_text(m.best, memory), rate_text(m.median, memory),
               m.clock_mhz > 0 ? fmt::format("{:.0f}", m.clock_mhz) : "-",
               sheet > 0 ? fmt::format("{:.0f} %", 100 * m.best / sheet) : "-"});
  }
  std::string out = fmt::format("{} ({})\n\n", device.name, device.id);
  out += table.render(terminal);
  if (!problems.empty()) out += "\nNot measured:\n" + problems;
  return out;
}

}  // namespace purlin::measure
