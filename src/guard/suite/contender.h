// SPDX-License-Identifier: Apache-2.0
// Contender: an arm made from what both arms share (the workload) and what one has of its own (a
// revision's folder, a command, environment variables, a cache).
//
// A Contender owns its arm and what that runs on. Thread-safety: as Arm. Failure: kInvalid where
// the two do not fit together; kernels that cannot be resolved fail when they are to run.
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

// What is run: the kernels and commands of a suite, or else one command.
struct Workload {
  std::optional<Suite> suite;
  RunnerOptions runner;  // of the suite's kernels
  DeviceInfo device;
  std::string cache;
  CommandSpec command;
};

struct Variant {
  std::string label;
  // A revision: the folder that takes the repository's place, and the commit with how it was built.
  // A command runs in `root`; a suite's paths are moved from `repository` to it. "" = as they are.
  std::string repository, root, identity;
  std::map<std::string, std::string> environment;
  std::string cache;                 // "" = the workload's
  std::vector<std::string> command;  // argv; empty = the workload's
};

// The samples CSV (docs/formats/samples.md), as a command prints it of itself.
OutputRules samples_rules();

struct Contender {
  std::unique_ptr<Runner> runner;
  std::unique_ptr<Arm> arm;
  // Of a suite's kernels, and of its commands by their name.
  std::map<Item, Thresholds> thresholds;
  std::vector<CommandSpec> commands;
  Thresholds thresholds_of(const Item& item, const Thresholds& fallback) const;
  std::map<Item, std::string> files;
};
Result<Contender> make_contender(const Workload& workload, const Variant& variant);

// "A=1,B=2", or a file with one such assignment on each line ('#' starts a comment).
Result<std::map<std::string, std::string>> parse_environment(const std::string& text);

}  // namespace purlin::guard
