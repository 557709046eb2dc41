// SPDX-License-Identifier: Apache-2.0
// From an item of a suite to a target that a process can run. The spec is loaded, the shape and
// config are resolved for one device, and the files are copied into a snapshot.
//
// Thread-safety: pure functions, except that they read files. Failure: kInvalid or kNotFound with a
// remedy. Each item fails alone: a broken spec does not affect the others.
#pragma once

#include "base/status.h"
#include "guard/arms/arm.h"
#include "guard/arms/runner.h"
#include "guard/arms/snapshot.h"
#include "guard/suite/baseline.h"
#include "guard/suite/suite.h"
#include "model/device/device.h"

#include <string>
#include <vector>

namespace purlin::guard {

struct ResolvedItem {
  Target target;
  std::string op;
  std::string request;  // as in the suite
  Snapshot snapshot;
  std::uint64_t seed = 0;
  Thresholds thresholds;
  std::string note;  // for a reader: the origin of the config; "" = the usual one

  std::string key() const { return target.kernel + " " + target.problem.text() + " " + request; }
};

// The name of an item that cannot be resolved: from its spec if that is readable, else the file.
Item name_of(const SuiteItem& item);

// `cache` is the config cache's directory. If the cache has no winner for a "cached" item, the
// config in `fallback` is used, with a note. Without `fallback` that is an error.
Result<ResolvedItem> resolve_item(const SuiteItem& item, const Suite& suite,
                                  const DeviceInfo& device, const std::string& cache,
                                  const Baseline* fallback = nullptr);

}  // namespace purlin::guard
