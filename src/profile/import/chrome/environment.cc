// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/environment.h"

#include "base/text.h"
#include "base/time.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace purlin::profile {
namespace {

bool is_amd(const std::string& name) {
  for (const char* mark : {"AMD", "Instinct", "Radeon", "gfx"})
    if (name.find(mark) != std::string::npos) return true;
  return false;
}

// 13000 -> "13.0"
std::string cuda_version(std::int64_t number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

DeviceInfo device_of(const Json& from, bool amd) {
  DeviceInfo info;
  const auto number = [&](const char* key) { return from[key].as_int(); };
  const auto small = [&](const char* key) {
    return static_cast<int>(std::clamp<std::int64_t>(number(key), 0, 1 << 30));
  };
  info.kind = "gpu";
  info.name = from["name"].as_string();
  amd = amd || is_amd(info.name);
  info.backend = amd ? "hip" : "cuda";
  info.vendor = amd ? "AMD" : "NVIDIA";
  info.id = fmt::format("{}:{}", info.backend, number("id"));
  // Of AMD's devices the numbers do not give the target's name.
  if (!amd && from.find("computeMajor") != nullptr)
    info.arch = fmt::format("sm_{}{}", number("computeMajor"), number("computeMinor"));
  info.compute_units = small("numSms");
  info.memory_bytes =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, number("totalGlobalMem")));
  info.shared_memory_per_block =
      std::max(number("sharedMemPerBlock"), number("sharedMemPerBlockOptin"));
  info.shared_memory_per_unit = number("sharedMemPerMultiprocessor");
  info.registers_per_block = number("regsPerBlock");
  info.registers_per_unit = number("regsPerMultiprocessor");
  info.warp_size = small("warpSize");
  info.max_threads_per_block = small("maxThreadsPerBlock");
  info.max_threads_per_unit =
      small(from.find("maxThreadsPerMultiprocessor") != nullptr ? "maxThreadsPerMultiprocessor"
                                                                : "maxThreadsPerMultiProcessor");
  return info;
}

}  // namespace

std::int64_t base_time_ns(const Json& members) {
  constexpr std::int64_t kMaxInputs = 4'000'000'000'000'000'000;
  const std::int64_t base = members["baseTimeNanoseconds"].as_int();
  return base >= 0 && base <= kMaxInputs ? base : 0;
}

std::vector<std::uint16_t> read_environment(const Json& members, Records& records,
                                            Profile& profile) {
  constexpr std::size_t kMaxNamedDevices = 4096;
  std::vector<DeviceInfo>& devices = profile.environment.devices;
  std::vector<std::int64_t> ids;
  for (const Json& properties : members["deviceProperties"].items()) {
    if (devices.size() >= kMaxNamedDevices) break;
    devices.push_back(device_of(properties, records.host_is_amd));
    ids.push_back(properties["id"].as_int());
  }
  std::vector<std::uint16_t> index;
  for (const std::int64_t id : records.devices) {
    std::size_t at = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
    if (at == ids.size() && ids.size() < 2 * kMaxNamedDevices) {
      DeviceInfo info;
      info.kind = "gpu";
      info.backend = records.host_is_amd ? "hip" : records.has_kineto ? "cuda" : "";
      info.id = fmt::format("{}:{}", info.backend.empty() ? "device" : info.backend, id);
      devices.push_back(std::move(info));
      ids.push_back(id);
    }
    index.push_back(static_cast<std::uint16_t>(at < ids.size() ? at : 0));
  }
  const bool described = std::all_of(index.begin(), index.end(),
                                     [&](std::uint16_t at) { return !devices[at].name.empty(); });
  if (!described)
    profile.coverage.notes.push_back(
        {"no_device_info", "the trace does not describe its GPUs: no roofline, no occupancy", 0,
         0});
  const std::int64_t cuda_driver = members["cuda_driver_version"].as_int(),
                     cuda_runtime = members["cuda_runtime_version"].as_int(),
                     hip_driver = members["hip_driver_version"].as_int(),
                     hip_runtime = members["hip_runtime_version"].as_int();
  const auto hip_version = [](std::int64_t number) {  // 60241133 -> "6.2"
    return fmt::format("{}.{}", number / 10'000'000, number / 100'000 % 100);
  };
  for (DeviceInfo& device : devices) {
    if (cuda_runtime > 0) device.toolkit = "CUDA " + cuda_version(cuda_runtime);
    if (hip_runtime > 0) device.toolkit = "HIP " + hip_version(hip_runtime);
    // The newest CUDA of the driver: the only fact about the driver in the trace.
    if (cuda_driver > 0) device.driver = "CUDA " + cuda_version(cuda_driver);
    if (hip_driver > 0) device.driver = "HIP " + hip_version(hip_driver);
  }
  const Json& distributed = members["distributedInfo"];
  const auto number = [&distributed](std::string_view key, std::int64_t otherwise) {
    const Json* value = distributed.find(key);
    if (value == nullptr) return otherwise;
    return value->is_string() ? parse_int(value->as_string()).value_or(otherwise)
                              : value->as_int(otherwise);
  };
  const auto bounded = [](std::int64_t value, std::int64_t least) {
    return static_cast<int>(std::clamp<std::int64_t>(value, least, 1 << 30));
  };
  const bool amd = !devices.empty() && devices[0].backend == "hip";
  for (ProcessInfo& process : records.processes) {
    process.layer = records.has_xla ? "xla" : amd ? "hip" : "cuda";
    process.rank = bounded(number("rank", -1), -1);
    process.world_size = bounded(number("world_size", 0), 0);
  }
  if (!profile.environment.devices.empty() && records.processes.empty())
    records.processes.emplace_back();
  return index;
}

void set_times(std::int64_t begin_ns, std::int64_t end_ns, Profile& profile, Records& records) {
  // Before 2001 it is no wall clock but one since boot.
  constexpr std::int64_t kEarliest = 1'000'000'000'000'000'000;
  if (begin_ns >= kEarliest) profile.environment.recorded_at = format_rfc3339(begin_ns);
  for (ProcessInfo& process : records.processes) {
    process.start_ns = begin_ns;
    process.end_ns = end_ns;
    process.complete = !profile.partial;
  }
}

// Kineto appends what it had to say: {"WARNING": ["…"], "ERROR": ["…"]}.
void note_warnings(const Json& members, Profile& profile) {
  constexpr std::size_t kMaxInputs = 20;
  for (const char* level : {"ERROR", "WARNING"}) {
    const Json::Array& messages = members[level].items();
    for (std::size_t i = 0; i < std::min(messages.size(), kMaxInputs); ++i)
      profile.coverage.notes.push_back(
          {"recorder_message",
           "the profiler that recorded this says: " + messages[i].as_string().substr(0, 500), 0,
           0});
  }
}

}  // namespace purlin::profile
