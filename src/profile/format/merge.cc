// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "base/text.h"
#include "profile/format/documents.h"
#include "profile/format/file.h"

#include <algorithm>
#include <unordered_map>

namespace purlin::profile {
namespace {

// What makes two rows one, as text: unambiguous because numbers hold no separator and the names'
// lengths lead.
std::string key_of(const KernelRow& row, int device) {
  const LaunchShape& launch = row.launch;
  return fmt::format("{}:{}:{}:{}:{}:{}|{},{},{}|{},{},{}|{},{},{}|{},{},{},{},{}", row.name.size(),
                     row.op.size(), row.shape.size(), row.name, row.op, row.shape, launch.grid[0],
                     launch.grid[1], launch.grid[2], launch.block[0], launch.block[1],
                     launch.block[2], launch.cluster[0], launch.cluster[1], launch.cluster[2],
                     launch.dynamic_shared_bytes, row.static_shared_bytes, row.registers,
                     row.local_bytes, device);
}

std::vector<int> merge_devices(Environment& into, const Environment& from) {
  std::vector<int> index;
  for (const DeviceInfo& device : from.devices) {
    const auto same =
        std::find_if(into.devices.begin(), into.devices.end(), [&](const DeviceInfo& other) {
          return other.id == device.id && other.name == device.name && other.uuid == device.uuid;
        });
    index.push_back(static_cast<int>(same - into.devices.begin()));
    if (same == into.devices.end()) into.devices.push_back(device);
  }
  if (into.host_os.empty()) into.host_os = from.host_os;
  if (into.host_kernel.empty()) into.host_kernel = from.host_kernel;
  if (into.host_cpu.empty()) into.host_cpu = from.host_cpu;
  if (into.host_cpus == 0) into.host_cpus = from.host_cpus;
  if (into.build.empty()) into.build = from.build;
  if (into.recorded_at.empty()) into.recorded_at = from.recorded_at;
  return index;
}

void merge_row(KernelRow& into, const KernelRow& from) {
  if (from.duration.empty()) return;
  into.first_ns = into.duration.empty() ? from.first_ns : std::min(into.first_ns, from.first_ns);
  into.last_ns = into.duration.empty() ? from.last_ns : std::max(into.last_ns, from.last_ns);
  into.duration.merge(from.duration);
}

// Rows are indexed once per merge target, so that a thousand files take time in proportion.
class Merger {
 public:
  explicit Merger(Profile& into) : into_(into) {
    for (std::size_t i = 0; i < into.kernels.size(); ++i)
      rows_.emplace(key_of(into.kernels[i], into.kernels[i].device), i);
  }

  void add(const Profile& from) {
    const std::vector<int> devices = merge_devices(into_.environment, from.environment);
    const auto device_of = [&](int device) {
      const auto at = static_cast<std::size_t>(device);
      return device >= 0 && at < devices.size() ? devices[at] : device;
    };
    std::vector<std::uint32_t> kernels;
    for (const KernelRow& row : from.kernels) {
      const int device = device_of(row.device);
      const auto [position, added] = rows_.try_emplace(key_of(row, device), into_.kernels.size());
      kernels.push_back(static_cast<std::uint32_t>(position->second));
      if (added) {
        into_.kernels.push_back(row);
        into_.kernels.back().device = device;
      } else {
        merge_row(into_.kernels[position->second], row);
      }
    }
    for (const CopyRow& row : from.copies) add_copy(row, device_of(row.device));
    const auto first_process = static_cast<std::uint32_t>(into_.processes.size());
    into_.processes.insert(into_.processes.end(), from.processes.begin(), from.processes.end());
    for (Activity activity : from.timeline.activities) {
      if (activity.kind != ActivityKind::kKernel || activity.row >= kernels.size()) continue;
      activity.row = kernels[activity.row];
      activity.process += first_process;
      activity.device = static_cast<std::uint16_t>(device_of(activity.device));
      activity.call = kNone;
      into_.timeline.activities.push_back(activity);
    }
    merge_into(into_.coverage, from.coverage);
    into_.partial = into_.partial || from.partial;
    into_.wall_ns = std::max(into_.wall_ns, from.wall_ns);
    if (into_.command.empty()) into_.command = from.command;
    if (into_.exit_code == 0) into_.exit_code = from.exit_code;
  }

 private:
  void add_copy(const CopyRow& row, int device) {
    const auto same = std::find_if(
        into_.copies.begin(), into_.copies.end(),
        [&](const CopyRow& other) { return other.kind == row.kind && other.device == device; });
    if (same == into_.copies.end()) {
      into_.copies.push_back(row);
      into_.copies.back().device = device;
    } else {
      same->bytes += row.bytes;
      same->duration.merge(row.duration);
    }
  }

  Profile& into_;
  std::unordered_map<std::string, std::size_t> rows_;
};

}  // namespace

void merge_into(Profile& into, const Profile& from) { Merger(into).add(from); }

Result<Profile> read_spool(const std::string& directory) {
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(directory));
  Profile merged;
  Merger merger(merged);
  for (const std::string& name : names) {
    if (!ends_with(name, ".plprof")) continue;
    Result<Profile> part = read_profile(join_path(directory, name));
    if (part.is_ok()) {
      merger.add(*part);
    } else {
      merged.partial = true;
      merged.coverage.notes.push_back(
          {"unreadable_process_file",
           fmt::format("what one process captured is lost: {}", part.status().message()), 0, 0});
    }
  }
  return merged;
}

}  // namespace purlin::profile
