// SPDX-License-Identifier: Apache-2.0
// From what a suite says to what a process can run: the spec is loaded, the shape and config are
// settled for one device, the files are snapshotted.
//
// Thread-safety: pure but for reading files. Failure: kInvalid or kNotFound with what to do about
// it; each item fails on its own, so that one broken spec does not silence the others.
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
  std::string note;  // what a reader should know of how the config was found; "" = nothing

  std::string key() const { return target.kernel + " " + target.problem.text() + " " + request; }
};

// What an item is called that cannot be resolved: as far as its spec can be read, else by the file.
Item name_of(const SuiteItem& item);

// `cache` is the config cache's directory. Where the cache has no winner for a "cached" item, the
// config that `fallback` recorded for it is used and the note says so; without it that is an error.
Result<ResolvedItem> resolve_item(const SuiteItem& item, const Suite& suite,
                                  const DeviceInfo& device, const std::string& cache,
                                  const Baseline* fallback = nullptr);

}  // namespace purlin::guard
