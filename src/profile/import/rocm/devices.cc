// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocm/devices.h"

#include "base/text.h"

#include <algorithm>
#include <limits>

namespace purlin::profile {
namespace {

using AgentColumns = RocprofColumns;

constexpr std::size_t kMaxAgents = 1024;

int to_small(std::string_view text) { return static_cast<int>(to_count(text) & 0xFFFFFF); }

}  // namespace

std::int64_t number_in(std::string_view text) {
  const std::size_t digits = text.find_first_of("0123456789");
  if (digits == std::string_view::npos) return -1;
  text = text.substr(digits);
  return parse_int(text.substr(0, text.find_first_not_of("0123456789"))).value_or(-1);
}

std::uint32_t to_count(std::string_view text) {
  const double value = parse_double(trim(text)).value_or(0);
  if (!(value > 0)) return 0;
  return static_cast<std::uint32_t>(
      std::min(value, static_cast<double>(std::numeric_limits<std::uint32_t>::max())));
}

void RocprofDevices::add_agent(const AgentColumns& columns, Fields fields) {
  if (columns.get(AgentColumns::kAgentType, fields) != "GPU" || agents_.size() >= kMaxAgents)
    return;
  Agent agent;
  agent.node = number_in(columns.get(AgentColumns::kNode, fields));
  agent.logical = number_in(columns.get(AgentColumns::kLogicalNode, fields));
  agent.info.name = columns.get(AgentColumns::kProduct, fields);
  agent.info.arch = columns.get(AgentColumns::kName, fields);
  if (agent.info.name.empty()) agent.info.name = agent.info.arch;
  agent.info.compute_units = to_small(columns.get(AgentColumns::kUnits, fields));
  agent.info.clock_mhz = to_count(columns.get(AgentColumns::kClock, fields));
  agent.info.warp_size = to_small(columns.get(AgentColumns::kWaveSize, fields));
  agent.info.shared_memory_per_unit =
      std::int64_t{to_count(columns.get(AgentColumns::kSharedKb, fields))} * 1024;
  agents_.push_back(std::move(agent));
}

// rocprof-compute profiles one model of GPU and describes it in separate files.
void RocprofDevices::add_system(const AgentColumns& columns, Fields fields) {
  system_.arch = columns.get(AgentColumns::kArch, fields);
  system_.name = columns.get(AgentColumns::kModel, fields);
  if (system_.name.empty()) system_.name = system_.arch;
  system_.compute_units = to_small(columns.get(AgentColumns::kUnits, fields));
  system_.clock_mhz = to_count(columns.get(AgentColumns::kClock, fields));
  system_.warp_size = to_small(columns.get(AgentColumns::kWaveSize, fields));
}

void RocprofDevices::add_roofline(const AgentColumns& columns, Fields fields) {
  const auto gigabytes = parse_double(trim(columns.get(AgentColumns::kBandwidth, fields)));
  if (gigabytes && *gigabytes > 0 && *gigabytes < 1e6)
    system_.memory_bytes_per_s = std::max(system_.memory_bytes_per_s, *gigabytes * 1e9);
}

int RocprofDevices::index(std::string_view text) {
  if (const auto at = devices_.find(text); at != devices_.end()) return at->second;
  std::vector<DeviceInfo>& devices = environment_.devices;
  if (devices.size() >= kMaxAgents) return 0;
  const std::int64_t number = number_in(text);
  const Agent* found = nullptr;
  if (starts_with(text, "GPU")) {
    if (number >= 0 && static_cast<std::size_t>(number) < agents_.size())
      found = &agents_[static_cast<std::size_t>(number)];
  } else {
    const bool logical = starts_with(text, "Agent");
    for (const Agent& agent : agents_)
      if ((logical && agent.logical >= 0 ? agent.logical : agent.node) == number) found = &agent;
  }
  const int index = devices_[std::string(text)] = static_cast<int>(devices.size());
  DeviceInfo info = found != nullptr ? found->info : system_;
  // Nodes are numbered from the CPUs on; a program counts GPUs alone.
  info.id = fmt::format(
      "hip:{}", found != nullptr ? found - agents_.data() : std::max<std::int64_t>(number, 0));
  info.backend = "hip";
  info.kind = "gpu";
  info.vendor = "AMD";
  devices.push_back(std::move(info));
  return index;
}

}  // namespace purlin::profile
