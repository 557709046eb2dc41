// SPDX-License-Identifier: Apache-2.0
// From a profile to tuning tasks: the kernels with the most GPU time become tasks, with the shape
// that the program had, where a spec computes the same problem.
//
// Pure, except for the lookups in the cache of the entries that exist already. Thread-safety: that
// of the store. Cannot fail: a kernel without a task is listed with the reason.
#pragma once

#include "backlog/task.h"
#include "cache/store/store.h"
#include "model/device/device.h"
#include "model/spec/spec.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace purlin::backlog {

// A kernel at one problem shape, as a profile has it.
struct ProfiledKernel {
  std::string label;        // for texts
  std::string full, brief;  // names
  std::string op_class, family;
  std::string shape, dtype;  // "" where not known
  std::string device;        // model
  double share = 0;          // of the time of all kernels
  double total_ns = 0, launches = 0;
  double utilization = 0;  // of the roof that binds it, 0 = not known
};

struct ProfileTasks {
  std::vector<Task> tasks;
  std::vector<std::string> left_out;  // kernels without a task, and the reason
};

// `devices` are those of the profile. A spec computes the problem of a kernel in two cases: it is
// the same kernel; or the op, the type of an input and the names of the dimensions agree. Kernels
// of one spec and shape are one task. The headroom is 1 − utilization. A capture of OpenCL has no
// problem shapes: there the same kernel is enough, and the shape is the spec's own.
ProfileTasks profile_tasks(std::span<const ProfiledKernel> kernels,
                           std::span<const DeviceInfo> devices, std::span<const KernelSpec> specs,
                           const cache::Store& store);

}  // namespace purlin::backlog
