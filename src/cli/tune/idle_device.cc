// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/idle_device.h"

#include "base/files.h"
#include "base/os/process.h"
#include "base/text.h"

#include <map>
#include <set>

namespace purlin::cli {
namespace {

constexpr double kIdleCommandTimeoutS = 30;

}  // namespace

IdleDevice::IdleDevice(std::string name, const DeviceInfo& device, std::string command)
    : name_(std::move(name)), command_(std::move(command)) {
  if (device.uuid.empty()) return;
  Result<std::unique_ptr<gpu::Monitor>> monitor = gpu::open_monitor(device);
  if (monitor.is_ok()) monitor_ = std::move(monitor).value();
}

IdleDevice::Answer IdleDevice::look(std::size_t own) const {
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
  // Numbers of processes may be those of another container: they are counted.
  if (state.processes->size() > own)
    return {false, fmt::format("{} compute on it",
                               counted(state.processes->size() - own, "other process"))};
  if (state.protects_itself) return {false, "it protects itself from heat"};
  return {true, ""};
}

std::size_t processes_below(int pid) {
  std::map<int, std::vector<int>> children;
  const Result<std::vector<std::string>> names = list_directory("/proc");
  if (!names.is_ok()) return 1;
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
  return found.size();
}

}  // namespace purlin::cli
