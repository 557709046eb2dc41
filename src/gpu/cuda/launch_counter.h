// SPDX-License-Identifier: Apache-2.0
// LaunchCounter: hardware counters of single launches in this process, by CUPTI's range profiler.
//
// From the first count on, launches of the process cost about a microsecond more, for good: for
// processes that time nothing. Belongs to the thread whose context is current. Failure:
// kUnavailable says why there are none and will be none; kTimeout that somebody else uses them now.
#pragma once

#include "base/status.h"

#include <cuda.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace purlin::gpu {

class LaunchCounter {
 public:
  virtual ~LaunchCounter() = default;
  // Of what `launch` enqueues, by names with units (model/device/launch_counters.h): enqueued once
  // for each pass, with `prepare` before it. The context is the current one, of the device with
  // that index.
  virtual Result<std::map<std::string, double>> count(CUcontext context, int device,
                                                      const std::function<Status()>& prepare,
                                                      const std::function<Status()>& launch) = 0;
};

// `driver_major`: of the CUDA that the driver has, 13; 0 where it is not known.
Result<std::unique_ptr<LaunchCounter>> open_launch_counter(int driver_major);

}  // namespace purlin::gpu
