// SPDX-License-Identifier: Apache-2.0
// Contender: an arm with its runner and settings. It combines a workload, which both arms share,
// with a variant: a revision's folder, a command, environment variables, a cache.
//
// A Contender owns its arm and the arm's runner. Thread-safety: as Arm. Failure: kInvalid for a
// workload and a variant that do not fit together. A kernel that cannot be resolved fails in its
// run.
#pragma once

#include "guard/arms/runner.h"
#include "guard/suite/command_arm.h"
#include "guard/suite/suite_arm.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::guard {

// The kernels and commands of a suite, or one command.
struct Workload {
  std::optional<Suite> suite;
  RunnerOptions runner;  // of the suite's kernels
  DeviceInfo device;
  std::string cache;
  CommandSpec command;
  std::string scratch;  // for files of the commands; "" = the folder of temporary files
};

struct Variant {
  std::string label;
  // A revision: its folder in place of the repository, and an identity of the commit and its build.
  // A command runs in `root`. A suite's paths move from `repository` to `root`; "" = unchanged.
  std::string repository, root, identity;
  std::map<std::string, std::string> environment;
  std::string cache;                 // "" = the workload's
  std::vector<std::string> command;  // argv; empty = the workload's
};

// The samples CSV (docs/formats/samples.md), as the output of a command.
OutputRules samples_rules();

struct Contender {
  std::unique_ptr<Runner> runner;
  std::unique_ptr<Arm> arm;
  // Thresholds of a suite's kernels; commands carry their own.
  std::map<Item, Thresholds> thresholds;
  std::vector<CommandSpec> commands;
  Thresholds thresholds_of(const Item& item, const Thresholds& fallback) const;
  std::map<Item, std::string> files;
};
Result<Contender> make_contender(const Workload& workload, const Variant& variant);

// "A=1,B=2", or a file with one such assignment on each line ('#' starts a comment).
Result<std::map<std::string, std::string>> parse_environment(const std::string& text);

}  // namespace purlin::guard
