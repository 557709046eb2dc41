// SPDX-License-Identifier: Apache-2.0
// From a suite to an arm: its items with the current files of one root folder and one cache.
//
// An item that cannot be resolved stays in the arm and fails in its run. It gets its own
// verdict. Thread-safety: as resolve.h.
#pragma once

#include "guard/arms/kernel_arm.h"
#include "guard/suite/resolve.h"
#include "guard/suite/suite.h"

#include <memory>
#include <string>
#include <vector>

namespace purlin::guard {

struct SuiteArmOptions {
  std::string label;
  std::string cache;  // directory of the config cache
  // Paths of specs move from the folder `from` to the folder `to`: the same suite on the files of
  // another revision. "" = unchanged.
  std::string from, to;
  std::map<std::string, std::string> environment;  // of the runner's processes, for the record
};

// The arm, and the thresholds of each of its items.
struct SuiteArm {
  std::unique_ptr<Arm> arm;
  std::map<Item, Thresholds> thresholds;
  std::map<Item, std::string> files;  // the spec of each, for annotations
};
// `path`, moved from the folder `from` to the folder `to`; unchanged if `to` is "".
Result<std::string> moved_path(const std::string& path, const std::string& from,
                               const std::string& to);

Result<SuiteArm> make_suite_arm(const Suite& suite, const DeviceInfo& device,
                                const SuiteArmOptions& options, Runner& runner);

}  // namespace purlin::guard
