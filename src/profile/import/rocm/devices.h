// SPDX-License-Identifier: Apache-2.0
// RocprofDevices: the GPU of a rocprof file, with the facts in the run's other files.
// Fills Environment::devices with those that are asked for. Refers to the environment, which must
// outlive it; at most 1,024 devices, further ones count as the first. Not thread-safe.
#pragma once

#include "model/device/device.h"
#include "profile/import/rocm/tables.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile {

class RocprofDevices {
 public:
  using Fields = std::span<const std::string_view>;
  explicit RocprofDevices(Environment& environment) : environment_(environment) {}

  // Before the first index(): a row of *_agent_info.csv, of rocprof-compute's sysinfo.csv and
  // roofline.csv.
  void add_agent(const RocprofColumns& columns, Fields fields);
  void add_system(const RocprofColumns& columns, Fields fields);
  void add_roofline(const RocprofColumns& columns, Fields fields);
  bool described() const { return !agents_.empty() || !system_.name.empty(); }

  // "Agent 4" counts agents, "GPU-0" counts GPUs, "4" is a node; --agent-index says which it is.
  int index(std::string_view agent);
  DeviceInfo& info(int index) { return environment_.devices[static_cast<std::size_t>(index)]; }

 private:
  struct Agent {
    DeviceInfo info;
    std::int64_t node = -1, logical = -1;
  };
  Environment& environment_;
  std::vector<Agent> agents_;
  DeviceInfo system_;
  std::map<std::string, int, std::less<>> devices_;
};

// The number in "Agent 4", "GPU-0", "4"; -1 without one.
std::int64_t number_in(std::string_view text);
// A count in a field; 0 where it is none or negative, the greatest number where it is larger.
std::uint32_t to_count(std::string_view text);

}  // namespace purlin::profile
