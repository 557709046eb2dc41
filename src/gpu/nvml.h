// SPDX-License-Identifier: Apache-2.0
// NVML: clocks and the driver's version. Optional: without it these facts are unknown.
//
// nvml.h is not in every toolkit, so the few functions used are declared in nvml.cc. Thread-safety:
// NVML is thread-safe; an object is immutable after load. Failure: kUnavailable.
#pragma once

#include "base/status.h"

#include <memory>
#include <string>

namespace purlin::gpu {

class Nvml {
 public:
  static Result<std::unique_ptr<Nvml>> load();
  ~Nvml();
  std::string driver_version() const;  // "580.159.04"
  // A device is named by its PCI address ("0000:3B:00.0") or its UUID ("GPU-…").
  // The SM clock now, in MHz; 0 where it cannot be read.
  double sm_clock_mhz(const std::string& device) const;
  // What holds the clock down now: "power cap, thermal, software"; "" for nothing, or not known.
  std::string clock_limits(const std::string& device) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  void* handle_of(const std::string& device) const;
  std::unique_ptr<Functions> functions_;
};

}  // namespace purlin::gpu
