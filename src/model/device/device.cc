// SPDX-License-Identifier: Apache-2.0
#include "model/device/device.h"

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"

#include <string_view>
#include <sys/utsname.h>
#include <thread>
#include <type_traits>

namespace purlin {
namespace {

// The one list of fields, for both directions. `Info` is DeviceInfo or const DeviceInfo.
template <class Info, class Visit>
void visit_fields(Info& info, Visit visit) {
  visit("id", info.id);
  visit("backend", info.backend);
  visit("kind", info.kind);
  visit("name", info.name);
  visit("vendor", info.vendor);
  visit("arch", info.arch);
  visit("uuid", info.uuid);
  visit("driver", info.driver);
  visit("toolkit", info.toolkit);
  visit("compute_units", info.compute_units);
  visit("clock_mhz", info.clock_mhz);
  visit("memory_clock_mhz", info.memory_clock_mhz);
  visit("memory_bus_bits", info.memory_bus_bits);
  visit("memory_bytes_per_s", info.memory_bytes_per_s);
  visit("memory_bytes", info.memory_bytes);
  visit("l2_bytes", info.l2_bytes);
  visit("shared_memory_per_block_bytes", info.shared_memory_per_block);
  visit("shared_memory_per_unit_bytes", info.shared_memory_per_unit);
  visit("registers_per_block", info.registers_per_block);
  visit("registers_per_unit", info.registers_per_unit);
  visit("warp_size", info.warp_size);
  visit("max_threads_per_block", info.max_threads_per_block);
  visit("max_threads_per_unit", info.max_threads_per_unit);
  visit("max_block", info.max_block);
  visit("max_grid", info.max_grid);
}

using Extents = std::array<std::int64_t, 3>;

// Unknown facts are left out, so that a reader cannot take a 0 for a measurement.
struct Writer {
  Json& json;
  void operator()(const char* key, const std::string& value) const {
    if (!value.empty()) json.set(key, value);
  }
  void operator()(const char* key, const Extents& value) const {
    if (value != Extents{}) json.set(key, Json::array_of(value));
  }
  template <class Number>
  void operator()(const char* key, const Number& value) const {
    if (value != Number{}) json.set(key, value);
  }
};

struct Reader {
  const Json& json;
  void operator()(const char* key, std::string& value) const { value = json[key].as_string(); }
  void operator()(const char* key, double& value) const { value = json[key].as_double(); }
  void operator()(const char* key, Extents& value) const {
    const Json::Array& items = json[key].items();
    for (std::size_t i = 0; i < value.size() && i < items.size(); ++i) value[i] = items[i].as_int();
  }
  template <class Integer>
  void operator()(const char* key, Integer& value) const {
    value = static_cast<Integer>(json[key].as_int());
  }
};

// The value of `KEY=value` or `key : value`, whichever separator the file uses; "" if absent.
std::string field_of(std::string_view text, std::string_view key, char separator) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const std::size_t at = line.find(separator);
    if (at != std::string_view::npos && trim(line.substr(0, at)) == key) {
      std::string_view value = trim(line.substr(at + 1));
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2);
      return std::string(value);
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return "";
}

// Files under /proc and /etc are small; one that cannot be read leaves its facts unknown.
std::string read_small(const char* path) {
  return read_file(path, std::size_t{4} << 20).value_or("");
}

}  // namespace

Json to_json(const DeviceInfo& info) {
  Json json = Json::object();
  visit_fields(info, Writer{json});
  return json;
}

DeviceInfo device_from_json(const Json& json) {
  DeviceInfo info;
  visit_fields(info, Reader{json});
  return info;
}

Json to_json(const Environment& environment) {
  Json devices = Json::array();
  for (const DeviceInfo& device : environment.devices) devices.push(to_json(device));
  Json json = Json::object({{"devices", std::move(devices)}});
  const Writer write{json};
  write("host_os", environment.host_os);
  write("host_kernel", environment.host_kernel);
  write("host_cpu", environment.host_cpu);
  write("host_cpus", environment.host_cpus);
  write("build", environment.build);
  write("recorded_at", environment.recorded_at);
  return json;
}

Environment environment_from_json(const Json& json) {
  Environment environment;
  for (const Json& device : json["devices"].items())
    environment.devices.push_back(device_from_json(device));
  const Reader read{json};
  read("host_os", environment.host_os);
  read("host_kernel", environment.host_kernel);
  read("host_cpu", environment.host_cpu);
  read("host_cpus", environment.host_cpus);
  read("build", environment.build);
  read("recorded_at", environment.recorded_at);
  return environment;
}

Environment host_environment() {
  Environment environment;
  environment.host_os = field_of(read_small("/etc/os-release"), "PRETTY_NAME", '=');
  utsname names{};
  if (::uname(&names) == 0) environment.host_kernel = names.release;
  const std::string cpuinfo = read_small("/proc/cpuinfo");
  environment.host_cpu = field_of(cpuinfo, "model name", ':');
  if (environment.host_cpu.empty()) environment.host_cpu = field_of(cpuinfo, "Processor", ':');
  // Arm's kernel names no model; the machine type is better than nothing.
  if (environment.host_cpu.empty()) environment.host_cpu = names.machine;
  environment.host_cpus = static_cast<int>(std::thread::hardware_concurrency());
  environment.recorded_at = format_rfc3339(system_clock().wall_ns());
  return environment;
}

}  // namespace purlin
