// SPDX-License-Identifier: Apache-2.0
// Check: the logic of `guard baseline`, `guard check` and `guard run`, over a Runner.
//
// A check runs both arms now, in pairs: the snapshot of the baseline, and the current files with
// the current cache. A verdict never compares recorded times with new ones. The recorded times only
// show a drift of the machine. Thread-safety: belongs to one thread. Failure: a Status when the
// machine or the tool cannot continue; nothing is written here.
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

// Measures the current items and commands in `rounds` fresh processes each, in random order,
// without a verdict. An item that fails has the reason in its status and gets no further rounds.
struct Measured {
  std::string kernel;  // NAME/BENCHMARK for a command, without problem and config
  ProblemShape problem;
  Config config;
  Status status;
  std::vector<ProcessReading> processes;
  bool skipped = false;  // it skips itself; `status` has the reason
  // The requested config, where kernel and problem are those of another item too; else "".
  std::string variant;

  Item item() const { return {kernel, problem.text(), variant}; }
};
Result<std::vector<Measured>> measure_suite(const GuardRun& session, int rounds);

// Measures every item in `rounds` fresh processes each, in random order. Any failing item is an
// error: no baseline is incomplete. REQUIRES: no commands in the suite. A check runs the
// baseline's sources again, and a baseline has no sources of a command.
Result<Baseline> record_baseline(const GuardRun& session, int rounds, std::string note);

struct CheckOptions {
  // Judge on another device, driver or toolkit than the baseline's. The verdict then covers only
  // the difference of the two arms here and now.
  bool allow_environment_change = false;
  // Folder for profiles of regressions; "" = take none.
  std::string profiles;
};
// `scratch` is an empty folder for the snapshots, needed during the call only.
Result<Report> check(const GuardRun& session, const Baseline& baseline, const std::string& scratch,
                     const CheckOptions& options);

}  // namespace purlin::guard
