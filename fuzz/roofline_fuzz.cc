// SPDX-License-Identifier: Apache-2.0
// Whatever a profile says of a kernel, its roof is finite and its utilisation a share: names, ops,
// shapes, counters and launch shapes are foreign. The same bytes are read as a ceilings document.
#include "analyze/report/supplement.h"
#include "analyze/roofline/roofline.h"
#include "base/text.h"
#include "require.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

std::uint32_t number(const std::string& text) {
  return static_cast<std::uint32_t>(purlin::parse_int(text).value_or(1));
}

}  // namespace

// Lines: name, op, shape, dtype, GPU, arch, numbers of the launch; then counters as NAME=VALUE.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace purlin;
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto json = Json::parse(text); json.is_ok()) (void)ceilings_from_json(*json);
  std::vector<std::string> lines = split(text, '\n');
  lines.resize(std::max<std::size_t>(lines.size(), 7));
  Profile profile;
  DeviceInfo device;
  device.name = lines[4];
  device.arch = lines[5];
  device.kind = "gpu";
  std::vector<std::string> numbers = split(lines[6], ' ');
  numbers.resize(std::max<std::size_t>(numbers.size(), 12), "1");
  device.compute_units = static_cast<int>(number(numbers[0]) & 0xFFFF);
  KernelRow row;
  row.name = lines[0];
  row.op = lines[1];
  row.shape = lines[2];
  row.dtype = lines[3];
  row.launch.grid = {number(numbers[1]), number(numbers[2]), number(numbers[3])};
  row.launch.block = {number(numbers[4]), number(numbers[5]), number(numbers[6])};
  row.launch.cluster = {number(numbers[7]), 1, 1};
  row.launch.dynamic_shared_bytes = number(numbers[8]);
  row.static_shared_bytes = number(numbers[9]);
  row.registers = number(numbers[10]);
  row.duration.add(static_cast<double>(number(numbers[11])));
  for (std::size_t i = 7; i < lines.size(); ++i)
    if (const std::size_t at = lines[i].rfind('='); at != std::string::npos)
      row.counters.push_back(
          {lines[i].substr(0, at), parse_double(lines[i].substr(at + 1)).value_or(0), 1});
  profile.environment.devices = {device};
  profile.kernels = {row};
  (void)analyze::give_shape(profile, lines[0]);
  (void)analyze::name_gpu(profile, lines[4]);
  const analyze::Ceilings ceilings = analyze::build_ceilings(profile.environment.devices[0]);
  analyze::RoofSum sum(profile.environment.devices[0], ceilings);
  sum.add(profile.kernels[0], analyze::describe_kernel(row.name));
  const analyze::Roof roof = sum.roof();
  require(roof.utilization >= 0 && roof.utilization <= 1);
  require(roof.occupancy_theoretical >= 0 && roof.occupancy_theoretical <= 1);
  require(roof.occupancy_achieved >= 0 && roof.occupancy_achieved <= 1);
  require(!std::isnan(roof.flops) && !std::isnan(roof.bytes) && roof.flops >= 0 && roof.bytes >= 0);
  return 0;
}
