// SPDX-License-Identifier: Apache-2.0
// HardwareCounters: hardware counters of single launches in this process, by CUPTI's range
// profiler.
//
// From the first count on, each launch of the process takes about a microsecond longer until the
// process ends, so only processes that time nothing use it. Belongs to the thread whose context is
// current. Failure: kUnavailable with the reason, for good; kTimeout while another tool uses the
// counters.
#pragma once

#include "base/status.h"

#include <cuda.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace purlin::gpu {

class HardwareCounters {
 public:
  virtual ~HardwareCounters() = default;
  // Counts the work that `launch` enqueues, by names with units (model/device/launch_counters.h).
  // Calls `prepare` and `launch` once for each pass. The context is the current one, of the device
  // with that index.
  virtual Result<std::map<std::string, double>> count(CUcontext context, int device,
                                                      const std::function<Status()>& prepare,
                                                      const std::function<Status()>& launch) = 0;
};

// `driver_major`: of the CUDA that the driver has, 13; 0 where it is not known.
Result<std::unique_ptr<HardwareCounters>> open_hardware_counters(int driver_major);

}  // namespace purlin::gpu
