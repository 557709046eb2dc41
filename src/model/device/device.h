// SPDX-License-Identifier: Apache-2.0
// DeviceInfo: the facts of one device that decide whether a measurement or a cache entry is about
// it. Environment: those plus the host, as every document carries them. Zero or "" means not known.
#pragma once

#include "base/json/json.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace purlin {

struct DeviceInfo {
  std::string id;  // how the command line names it: "cuda:0", "opencl:0", "replay:FILE", "fake:0"
  std::string backend;  // "cuda", "opencl", "replay", "fake"
  std::string kind;     // "gpu", "cpu", "accelerator"
  std::string name;     // "NVIDIA H200"
  std::string vendor;
  std::string arch;  // "sm_90"; for OpenCL the driver's own name of the target
  std::string uuid;
  std::string driver;     // driver version: "580.159.04", "3.1"
  std::string toolkit;    // what compiles: "NVRTC 13.0", "OpenCL C 1.2 (PoCL)"
  int compute_units = 0;  // SMs
  double clock_mhz = 0;   // nominal maximum
  double memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  double memory_bytes_per_s = 0;  // where a recording says it; else clock and bus tell
  std::uint64_t memory_bytes = 0;
  std::uint64_t l2_bytes = 0;
  std::int64_t shared_memory_per_block = 0;  // bytes; the most a launch may ask for
  std::int64_t shared_memory_per_unit = 0;   // bytes per SM
  std::int64_t registers_per_block = 0;      // 32-bit registers
  std::int64_t registers_per_unit = 0;
  int warp_size = 0;
  int max_threads_per_block = 0;
  int max_threads_per_unit = 0;
  std::array<std::int64_t, 3> max_block = {0, 0, 0};
  std::array<std::int64_t, 3> max_grid = {0, 0, 0};
};

Json to_json(const DeviceInfo& info);
DeviceInfo device_from_json(const Json& json);  // lenient: what is absent stays unknown

struct Environment {
  std::vector<DeviceInfo> devices;
  std::string host_os;      // "Debian GNU/Linux 12 (bookworm)"
  std::string host_kernel;  // uname -r
  std::string host_cpu;
  int host_cpus = 0;
  std::string build;        // the user's label of the code under test, "" if none given
  std::string recorded_at;  // RFC 3339, UTC
};

Json to_json(const Environment& environment);
Environment environment_from_json(const Json& json);
// The host's part; devices are the caller's to add.
Environment host_environment();

}  // namespace purlin
