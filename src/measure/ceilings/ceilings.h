// SPDX-License-Identifier: Apache-2.0
// Measured ceilings: micro-benchmarks of memory bandwidth and arithmetic, run through the device
// seam and kept per device and driver in the user's cache folder, where reports find them.
//
// Benchmarks that a device cannot run are left out and reported. Thread-safety: as the device's;
// the store is safe between processes (whole-file writes). Failure: the device's own Status; a
// damaged file in the store is skipped. The document: docs/formats/ceilings.md.
#pragma once

#include "base/json/json.h"
#include "base/output/terminal.h"
#include "base/status.h"
#include "gpu/device.h"
#include "model/device/ceilings.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::measure {

struct CeilingMeasurement {  // of one micro-benchmark
  std::string ceiling, method;
  double best = 0, median = 0;  // B/s or FLOP/s
  double clock_mhz = 0;         // SM clock at the best sample, 0 = not known
  int samples = 0;
  std::string problem;  // why there is no figure
};

struct MeasuredCeilings {
  Ceilings ceilings;  // of each name the best method
  std::vector<CeilingMeasurement> measurements;
};

struct CeilingOptions {
  double budget_s = 0.25;  // of samples, for each benchmark and grid
  std::uint64_t buffer_bytes =
      0;  // each of three; 0 = four times the L2 cache, at least 1 GiB (CPU: 64 MiB)
  std::function<void(std::string_view)> progress;  // "bf16 tensor, wgmma"; may be empty
};

// kFailed when the device is lost or nothing at all could be measured.
Result<MeasuredCeilings> measure_ceilings(gpu::Device& device, const CeilingOptions& options = {});

Json to_json(const CeilingMeasurement& measurement);
// The purlin.ceilings/1 document.
Json ceilings_document(const MeasuredCeilings& measured, const DeviceInfo& device);

// The same as text: each measurement next to the figure of the GPU table.
std::string render_ceilings(const MeasuredCeilings& measured, const DeviceInfo& device,
                            const Terminal& terminal);

// Where they are kept: the user's cache folder, one file for each device and driver.
std::string ceilings_directory();
Result<std::string> store_ceilings(const Json& document, const DeviceInfo& device,
                                   const std::string& directory);  // the path written
// The newest ceilings that were measured on this device (by UUID and driver). If the profile does
// not name the device, the newest of its model. Empty if there are no ceilings.
Ceilings load_ceilings(const DeviceInfo& device, const std::string& directory);

}  // namespace purlin::measure
