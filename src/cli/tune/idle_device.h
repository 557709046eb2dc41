// SPDX-License-Identifier: Apache-2.0
// IdleDevice: whether a device is free for tuning: no other program computes on it.
//
// A device that NVML knows is idle without compute processes other than this pool's own. A device
// whose processes cannot be read is never idle. A device that NVML does not know, such as a CPU
// through OpenCL, is idle unless --idle-command says otherwise. One thread. Cannot fail.
#pragma once

#include "gpu/monitor.h"
#include "model/device/device.h"

#include <memory>
#include <string>
#include <vector>

namespace purlin::cli {

class IdleDevice {
 public:
  // `command`: run by sh with PURLIN_DEVICE; exit status 0 = idle. "" = none.
  IdleDevice(std::string name, const DeviceInfo& device, std::string command);

  struct Answer {
    bool idle = false;
    std::string why;  // it is not
  };
  // `own`: the processes of this pool that may be on it.
  Answer look(const std::vector<int>& own) const;

 private:
  std::string name_, command_;
  std::unique_ptr<gpu::Monitor> monitor_;
};

// That process and all below it.
std::vector<int> processes_below(int pid);
// Of the processes on a device, those that are not `own`. Where the driver numbers them as another
// container does, none has an own number: then `own_with_device` of them are own, at most.
std::size_t foreign_processes(const std::vector<unsigned>& on_device, const std::vector<int>& own,
                              std::size_t own_with_device);

}  // namespace purlin::cli
