// SPDX-License-Identifier: Apache-2.0
// KernelArm: kernels of specs as an arm. One process of the arm is a worker that measures a few
// kernels one after the other.
//
// Thread-safety: belongs to one thread; the Runner outlives it. Failure: as the Runner's.
#pragma once

#include "guard/arms/arm.h"
#include "guard/arms/runner.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace purlin::guard {

struct KernelItem {
  Item item;
  Target target;
  std::string code;  // id of the snapshot of its files; part of the arm's fingerprint
  Status problem;    // kFailed: the kernel cannot run, and fails in every process
};

struct KernelArmOptions {
  std::string label;
  // Kernels per process. More kernels save time, because the start of a process takes a second. But
  // a kernel that heats the device then slows the next one, in both arms alike.
  std::size_t most_per_launch = 16;
  // Variables that the Runner adds to its processes: for the record and the fingerprint.
  std::map<std::string, std::string> environment;
};

std::unique_ptr<Arm> make_kernel_arm(KernelArmOptions options, std::vector<KernelItem> items,
                                     Runner& runner);

}  // namespace purlin::guard
