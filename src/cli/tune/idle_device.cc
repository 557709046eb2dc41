// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/idle_device.h"

#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"

#include <algorithm>
#include <map>
#include <set>
#include <unistd.h>

namespace purlin::cli {
namespace {

constexpr double kIdleCommandTimeoutS = 30;

// Those that can compute on a GPU: they have CUDA's device file open.
std::size_t holders_of_device(const std::vector<int>& pids) {
  std::size_t holders = 0;
  for (const int pid : pids) {
    const std::string folder = fmt::format("/proc/{}/fd", pid);
    const std::vector<std::string> names = list_directory(folder).value_or({});
    holders += std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      char target[64] = "";
      return ::readlink(join_path(folder, name).c_str(), target, sizeof target - 1) > 0 &&
             starts_with(target, "/dev/nvidia-uvm");
    });
  }
  return holders;
}

}  // namespace

IdleDevice::IdleDevice(std::string name, const DeviceInfo& device, std::string command)
    : name_(std::move(name)), command_(std::move(command)) {
  if (device.uuid.empty()) return;
  Result<std::unique_ptr<gpu::Monitor>> monitor = gpu::open_monitor(device);
  if (monitor.is_ok()) monitor_ = std::move(monitor).value();
}

std::size_t foreign_processes(const std::vector<unsigned>& on_device, const std::vector<int>& own,
                              std::size_t own_with_device) {
  const auto mine =
      static_cast<std::size_t>(std::count_if(on_device.begin(), on_device.end(), [&](unsigned pid) {
        return std::find(own.begin(), own.end(), static_cast<int>(pid)) != own.end();
      }));
  if (mine > 0 || own.empty()) return on_device.size() - mine;
  return on_device.size() - std::min(on_device.size(), own_with_device);
}

IdleDevice::Answer IdleDevice::look(const std::vector<int>& own) const {
  if (!command_.empty()) {
    Process::Options options;
    options.argv = {"sh", "-c", command_};
    options.environment = {{"PURLIN_DEVICE", name_}};
    const Result<Captured> ran = run_captured(std::move(options), kIdleCommandTimeoutS);
    if (!ran.is_ok()) return {false, ran.status().message()};
    if (ran->timed_out) return {false, "--idle-command did not end"};
    return ran->exit.ok() ? Answer{true, ""} : Answer{false, "--idle-command: " + ran->exit.text()};
  }
  if (monitor_ == nullptr) return {true, ""};
  const gpu::DeviceState state = monitor_->read();
  if (!state.processes) return {false, "the driver does not report its processes"};
  const std::size_t others = foreign_processes(*state.processes, own, holders_of_device(own));
  if (others > 0)
    return {false, fmt::format("{} {} on it", counted(others, "other process"),
                               others == 1 ? "computes" : "compute")};
  if (state.protects_itself) return {false, "it protects itself from heat"};
  return {true, ""};
}

std::vector<int> processes_below(int pid) {
  std::map<int, std::vector<int>> children;
  const Result<std::vector<std::string>> names = list_directory("/proc");
  if (!names.is_ok()) return {pid};
  for (const std::string& name : *names) {
    const std::optional<std::int64_t> number = parse_int(name);
    if (!number) continue;
    const Result<std::string> stat = read_file("/proc/" + name + "/stat", 4096);
    if (!stat.is_ok()) continue;
    // PID (COMMAND) STATE PARENT …: the command may have spaces and parentheses.
    const std::size_t end = stat->rfind(") ");
    if (end == std::string::npos) continue;
    const std::vector<std::string> rest = split(stat->substr(end + 2), ' ');
    if (rest.size() < 2) continue;
    if (const auto parent = parse_int(rest[1]))
      children[static_cast<int>(*parent)].push_back(static_cast<int>(*number));
  }
  std::set<int> found = {pid};
  std::vector<int> open = {pid};
  while (!open.empty()) {
    const int one = open.back();
    open.pop_back();
    for (const int child : children[one])
      if (found.insert(child).second) open.push_back(child);
  }
  return std::vector<int>(found.begin(), found.end());
}

}  // namespace purlin::cli
