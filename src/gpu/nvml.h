// SPDX-License-Identifier: Apache-2.0
// NVML: clocks, temperature, power, processes, and locking clocks. Optional: without it these facts
// are unknown.
//
// nvml.h is not in every toolkit, so the few functions used are declared here, as a table that
// tests fill with their own. Thread-safety: NVML is thread-safe; an object is immutable after load.
// Failure: kUnavailable.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::gpu {

// NVML's C ABI: results are an enum with 0 for success, devices are opaque pointers. The first row
// is in every driver; the others may be absent (nullptr).
struct NvmlTable {
  struct ProcessInfo {  // nvmlProcessInfo_t of the _v3 call
    unsigned int pid;
    unsigned long long used_memory;
    unsigned int gpu_instance, compute_instance;
  };
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char*, unsigned int) = nullptr;
  int (*by_pci)(const char*, void**) = nullptr;
  int (*by_uuid)(const char*, void**) = nullptr;
  int (*clock_info)(void*, int, unsigned int*) = nullptr;

  int (*clock_reasons)(void*, unsigned long long*) = nullptr;
  int (*temperature)(void*, int, unsigned int*) = nullptr;
  int (*power)(void*, unsigned int*) = nullptr;        // mW
  int (*power_limit)(void*, unsigned int*) = nullptr;  // mW
  int (*processes)(void*, unsigned int*, ProcessInfo*) = nullptr;
  int (*lock_clocks)(void*, unsigned int, unsigned int) = nullptr;
  int (*reset_clocks)(void*) = nullptr;
  int (*energy)(void*, unsigned long long*) = nullptr;  // mJ since the driver was loaded
};

class Nvml {
 public:
  static Result<std::unique_ptr<Nvml>> load();
  // Over the caller's functions; calls init().
  static Result<std::unique_ptr<Nvml>> over(const NvmlTable& table);
  ~Nvml();
  std::string driver_version() const;  // "580.159.04"
  // A device is named by its PCI address ("0000:3B:00.0") or its UUID ("GPU-…").
  // The SM clock now, in MHz; 0 where it cannot be read.
  double sm_clock_mhz(const std::string& device) const;
  // What limits the clock now: "power cap, thermal, software"; "" for nothing, or not known.
  std::string clock_limits(const std::string& device) const;
  std::uint64_t limit_bits(const std::string& device) const;
  static std::vector<std::string> limit_names(std::uint64_t bits);
  // Bits that show that the hardware protects itself: heat, or its power supply.
  static constexpr std::uint64_t kProtection = 0x08 | 0x20 | 0x40 | 0x80;

  double temperature_c(const std::string& device) const;
  double power_w(const std::string& device) const;
  double power_limit_w(const std::string& device) const;
  // The energy used since the driver was loaded, in mJ; kUnavailable if the device does not count
  // it.
  Result<double> energy_mj(const std::string& device) const;
  // nullopt if the driver does not report them.
  std::optional<std::vector<unsigned>> compute_processes(const std::string& device) const;

  // 0 and 0 = the base clock. kUnavailable with the reason: in most cases, it needs root.
  Status lock_clocks(const std::string& device, unsigned low_mhz, unsigned high_mhz) const;
  Status unlock_clocks(const std::string& device) const;

 private:
  struct State;
  explicit Nvml(std::unique_ptr<State> state);
  void* handle_of(const std::string& device) const;
  // The value a function writes for a device; 0 if it cannot be read.
  double read(int (*function)(void*, unsigned int*), const std::string& device) const;
  std::unique_ptr<State> state_;
};

}  // namespace purlin::gpu
