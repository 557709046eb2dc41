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

std::string backend_of(const Records& records) {
  if (!records.other_backend.empty()) return std::string(records.other_backend);
  if (records.host_is_amd) return "hip";
  return records.has_kineto ? "cuda" : "";
}

std::string vendor_of_backend(const std::string& backend) {
  if (backend == "cuda") return "NVIDIA";
  if (backend == "hip") return "AMD";
  if (backend == "mtia") return "Meta";
  return backend == "xpu" || backend == "hpu" ? "Intel" : "";
}

// ROCm's recorder numbers devices as HSA does: CPU sockets first, then GPUs, none of which a
// program can see as 0. `ids` are the numbers in the trace, `count` is how many GPUs it describes.
// The result is the number of the first GPU; 0 where the numbers are those of HIP.
std::int64_t first_hsa_gpu(const std::vector<std::int64_t>& ids, std::int64_t count) {
  if (ids.empty() || count == 0) return 0;
  const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
  if (*least <= 0) return 0;
  // A single GPU that the program sees is any of the node's.
  if (count == 1 && ids.size() == 1) return *least;
  constexpr std::int64_t kSockets[] = {2, 1, 4, 8};  // servers have two, mostly
  for (const std::int64_t sockets : kSockets)
    if (*least >= sockets && *most < sockets + count) return sockets;
  return *least;
}

// The trace's numbers of the devices that ran kernels. Memcpys may name a CPU.
std::vector<std::int64_t> devices_of_kernels(const Records& records) {
  std::vector<bool> used(records.devices.size(), records.kernels.empty());
  for (const DeviceRecord& kernel : records.kernels)
    if (kernel.activity.device < used.size()) used[kernel.activity.device] = true;
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) ids.push_back(records.devices[i]);
  return ids;
}

DeviceInfo device_of(const Json& from, const Records& records) {
  DeviceInfo info;
  const auto number = [&](const char* key) { return from[key].as_int(); };
  const auto small = [&](const char* key) {
    return static_cast<int>(std::clamp<std::int64_t>(number(key), 0, 1 << 30));
  };
  info.kind = "gpu";
  info.name = from["name"].as_string();
  info.backend = is_amd(info.name) ? "hip" : backend_of(records);
  // Where no call of a runtime tells, the name does.
  const bool untold = records.calls.empty() && records.other_backend.empty();
  if (untold && info.name.find("Intel") != std::string::npos) info.backend = "xpu";
  if (info.backend.empty()) info.backend = "cuda";
  info.vendor = vendor_of_backend(info.backend);
  info.id = fmt::format("{}:{}", info.backend, number("id"));
  // Of other devices the numbers do not give the target's name.
  if (info.backend == "cuda" && from.find("computeMajor") != nullptr)
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
    devices.push_back(device_of(properties, records));
    ids.push_back(properties["id"].as_int());
  }
  const bool described_amd = !devices.empty() && devices.front().backend == "hip";
  const std::vector<std::int64_t> gpus = devices_of_kernels(records);
  const std::int64_t first_gpu =
      described_amd ? first_hsa_gpu(gpus, static_cast<std::int64_t>(ids.size())) : 0;
  if (first_gpu > 0 && ids.size() > 1)
    profile.coverage.notes.push_back(
        {"hsa_device_numbers",
         fmt::format(
             "the trace numbers GPUs as HSA does, behind the CPUs: {} is taken as the first",
             first_gpu),
         0, 0});
  std::vector<std::uint16_t> index;
  for (std::int64_t id : records.devices) {
    id = (id < first_gpu ? gpus.front() : id) - first_gpu;
    std::size_t at = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
    if (at == ids.size() && ids.size() < 2 * kMaxNamedDevices) {
      DeviceInfo info;
      info.kind = "gpu";
      info.backend = backend_of(records);
      info.vendor = vendor_of_backend(info.backend);
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
  const std::string layer =
      devices.empty() || devices[0].backend.empty() ? "cuda" : devices[0].backend;
  for (ProcessInfo& process : records.processes) {
    process.layer = records.has_xla ? "xla" : layer;
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
