// SPDX-License-Identifier: Apache-2.0
// entry_of: the winner of a session as a cache entry. `purlin tune` and the tuner inside a program
// (runtime/program_tuner.h) both build their entries here.
//
// Pure function, safe from any thread. Failure: kNotFound when no config worked, kInvalid from the
// key (a dimension that the problem shape lacks, for example).
#pragma once

#include "base/status.h"
#include "cache/entry/entry.h"
#include "tune/session/session.h"

#include <string_view>

namespace purlin::tune {

// What the session tuned; all outlive the call.
struct EntrySubject {
  const KernelSpec& spec;
  const ProblemShape& problem;
  const DeviceInfo& device;  // as the key has it: the version of a library is its toolkit
  bool cold_cache = false;   // timed with a cold L2 cache
};

// Fills in the winner with its samples, the default config and the runner-up with their times (ms),
// the ties, and the provenance. `strategy` is the one used, after "auto" chose. `verified`: the
// outputs were compared with a reference. bucket_regret stays empty (tune/session/regret.h). Where
// the machine's state changed before the finals, all times stay 0, not measured.
Result<cache::Entry> entry_of(const SessionResult& result, const EntrySubject& subject,
                              std::string_view strategy, bool verified);

}  // namespace purlin::tune
