// SPDX-License-Identifier: Apache-2.0
// CommandArm: any command that prints times, as an arm: [[commands]] of a suite, or the command
// line of `guard compare`. Each launch is a fresh process of the command.
//
// The command is started directly, never through a shell. {output} in an argument is replaced by a
// new file for its times. PURLIN_SEED in its environment is the suite's seed. Thread-safety:
// belongs to one thread. Failure: a command that fails, or whose output is not readable, becomes a
// verdict on its items.
#pragma once

#include "guard/arms/arm.h"
#include "guard/suite/command_suite.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace purlin::guard {

struct CommandArmOptions {
  std::string label;
  std::string directory;  // commands' folders are relative to it
  std::map<std::string, std::string> environment;
  std::uint64_t seed = 0;
  double nominal_mhz = 0;  // of the device's clock, 0 = not known: see summarise()
  std::string identity;    // other inputs of the run, such as the revision
  std::string scratch;     // folder of the files with times; "" = that of temporary files
};

// prepare() runs each command once. That run is the rehearsal, and gives the items.
std::unique_ptr<Arm> make_command_arm(CommandArmOptions options, std::vector<CommandSpec> commands);

// Several arms as one: a suite of kernels and commands. Items must differ.
std::unique_ptr<Arm> join_arms(std::string label, std::vector<std::unique_ptr<Arm>> arms);

}  // namespace purlin::guard
