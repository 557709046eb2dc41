// SPDX-License-Identifier: Apache-2.0
// Check: the whole of `guard baseline`, `guard check` and `guard run`, given a way to run
// processes.
//
// A check runs both arms now, in pairs: the baseline's snapshot against the files and the cache as
// they are. The recorded times are never compared with new ones for a verdict; they only tell
// whether the machine has drifted. Thread-safety: belongs to one thread. Failure: a Status when the
// machine or the tool cannot go on; nothing is written here.
#pragma once

#include "base/log.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "guard/arms/pairs.h"
#include "guard/arms/runner.h"
#include "guard/report/report.h"
#include "guard/suite/baseline.h"
#include "guard/suite/resolve.h"
#include "guard/suite/suite.h"

#include <functional>
#include <string>

namespace purlin::guard {

struct GuardRun {
  const Suite& suite;
  const ResolvedDevice& device;
  std::string cache;  // directory of the config cache
  Runner& runner;
  Random& random;
  Clock& clock;
  PairsOptions options;
};

Environment environment_of(const GuardRun& session);

// The items and commands as they are now, measured in `rounds` fresh processes each, in random
// order and without a judgement. An item that fails says so in its status and spares its further
// rounds.
struct Measured {
  std::string kernel;  // of a command NAME/BENCHMARK, and then without a problem and a config
  ProblemShape problem;
  Config config;
  Status status;
  std::vector<ProcessReading> processes;
};
Result<std::vector<Measured>> measure_suite(const GuardRun& session, int rounds);

// Measures every item in `rounds` fresh processes each, in random order. Any failing item is an
// error: a baseline is whole or it is none. REQUIRES: no commands in the suite. A check runs the
// baseline's sources again beside those of now, and a baseline has no sources of a command.
Result<Baseline> record_baseline(const GuardRun& session, int rounds, std::string note);

struct CheckOptions {
  // Judge on another device, driver or toolkit than the baseline's: then only what differs between
  // the two arms here and now is proven.
  bool allow_environment_change = false;
  // Folder for profiles of what became slower; "" = none are taken.
  std::string profiles;
};
// `scratch` is an empty folder for the snapshots; it must outlive the call only.
Result<Report> check(const GuardRun& session, const Baseline& baseline, const std::string& scratch,
                     const CheckOptions& options);

}  // namespace purlin::guard
