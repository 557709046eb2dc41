// SPDX-License-Identifier: Apache-2.0
// KernelArm: kernels of specs as an arm. A process of it is a worker that measures a few of them
// one after the other.
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
  Status problem;    // why it cannot be run at all: kFailed; it then fails each time it is to run
};

struct KernelArmOptions {
  std::string label;
  // Kernels per process. More cost less, as starting a process costs a second; but a kernel that
  // heats the device is then felt by the next one, in both arms alike.
  std::size_t most_per_launch = 16;
  // What the Runner adds to its processes' environment: for the record and the fingerprint.
  std::map<std::string, std::string> environment;
};

std::unique_ptr<Arm> make_kernel_arm(KernelArmOptions options, std::vector<KernelItem> items,
                                     Runner& runner);

}  // namespace purlin::guard
