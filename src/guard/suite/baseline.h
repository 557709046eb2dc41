// SPDX-License-Identifier: Apache-2.0
// Baseline: what a suite measured when somebody declared it good: for each item the distribution of
// per-process medians, the code and config that gave it, and the record of how it was measured.
// docs/formats/baseline.md is the reference of the file.
//
// Thread-safety: value types. Failure: a file that is not a baseline is kInvalid, a damaged or
// newer one kCorrupt.
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
  Config config;           // what the request stood for
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
  // The promotion: who declared it good (why is the note), over the baseline of when, kept as what.
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

// What the record of a measurement must say for the numbers to mean anything later, and does not:
// "the driver's version", … . Empty = complete.
std::vector<std::string> missing_facts(const Baseline& baseline);

// The same of a run that is about to judge.
std::vector<std::string> missing_facts(const DeviceInfo& device);

// Where the baseline that is promoted over is kept: beside it, named for when it was recorded.
std::string previous_path(const std::string& path, const std::string& recorded_at);

// The fields in which times of one device say nothing of another's: what runs (backend, model,
// arch, units) and what makes the code that runs (driver, toolkit). The host, its load and the
// clock of the moment are left out: both arms meet them alike. In what the device of today differs
// from the baseline's; empty = the same environment.
std::vector<std::string> environment_differences(const DeviceInfo& recorded,
                                                 const DeviceInfo& today);

}  // namespace purlin::guard
