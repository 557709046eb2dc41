// SPDX-License-Identifier: Apache-2.0
// Baseline: the measurements of a suite that a user declared good. It holds, for each item, the
// distribution of per-process medians with its code and config, and the record of the measurement.
// docs/formats/baseline.md is the reference of the file.
//
// Thread-safety: value types. Failure: kInvalid for a file that is not a baseline, kCorrupt for a
// damaged or newer one.
#pragma once

#include "base/status.h"
#include "guard/arms/runner.h"
#include "guard/arms/snapshot.h"
#include "guard/suite/suite.h"
#include "model/device/device.h"

#include <map>
#include <string>
#include <vector>

namespace purlin::guard {

struct BaselineItem {
  std::string kernel, op;
  std::string request;  // the suite's config: "cached", "default", "BM=64"
  ProblemShape problem;
  Config config;           // the resolved request
  std::string snapshot;    // id in Baseline::snapshots
  std::uint64_t seed = 0;  // of the inputs: spec's plus suite's
  std::vector<ProcessReading> processes;

  std::string key() const { return kernel + " " + problem.text() + " " + request; }
  double p50_ns() const;
  double p95_ns() const;  // median of the processes' 95th percentiles
};

struct Baseline {
  std::string suite;  // its name
  DeviceInfo device;
  Environment environment;
  measure::Policy policy;
  std::uint64_t suite_seed = 0;
  std::string recorded_at, tool_version, note;
  // The promotion: its user (the reason is `note`), the time of the replaced baseline, and its
  // file.
  std::string promoted_by, replaces, previous;
  std::map<std::string, Snapshot> snapshots;
  std::vector<BaselineItem> items;

  const BaselineItem* find(const std::string& key) const;
};

Json to_json(const Baseline& baseline);
Result<Baseline> baseline_from_json(const Json& json);
Result<Baseline> load_baseline(const std::string& path);

// FILE, or NAME.json inside a folder.
std::string baseline_path(const std::string& output, const std::string& suite_name);

// The missing facts of a record, without which a later reader cannot judge its numbers: "the
// driver's version", … . Empty = complete.
std::vector<std::string> missing_facts(const Baseline& baseline);

// The same for a run with a verdict.
std::vector<std::string> missing_facts(const DeviceInfo& device);

// The file of the replaced baseline: next to the new one, with the time of its recording.
std::string previous_path(const std::string& path, const std::string& recorded_at);

// The differences of today's device from the recorded one that make their times incomparable:
// backend, model, arch and units, and the driver and toolkit that generate the code. The host, its
// load and the present clock do not count: they affect both arms alike. Empty = the same
// environment.
std::vector<std::string> environment_differences(const DeviceInfo& recorded,
                                                 const DeviceInfo& today);

}  // namespace purlin::guard
