// SPDX-License-Identifier: Apache-2.0
// CommandKernel: a spec's [command], a kernel that is built and run by commands. Their words and
// variables are templates with {NAME} placeholders.
//
// A command is a list of words and never goes through a shell. docs/formats/spec.md is the
// reference. Value types; pure functions. Failure: kInvalid with file:line:column.
#pragma once

#include "base/status.h"
#include "base/toml.h"
#include "model/output_rules.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

struct CommandKernel {
  std::vector<std::string> build;                  // Empty: nothing to build.
  std::vector<std::string> run;                    // Prints times.
  std::vector<std::string> check;                  // Exit status 0: right.
  std::vector<std::string> outputs;                // Files of the run, or "stdout".
  std::string expect;                              // Their digest; "" = the default's.
  std::map<std::string, std::string> environment;  // Of every command.
  bool wall_time = false;                          // The time of the whole process of `run`.
  OutputRules rules;                               // Of the output of `run`.
  std::string benchmark;                           // One of several; "" = there is one.
  bool on_host = false;                            // It uses the processor alone.

  struct File {
    std::string name;  // relative to the spec
    std::string hash;  // of its contents
  };
  std::vector<File> files;  // a part of the identity

  // Hash of everything that decides what is built and run.
  std::string identity() const;
};

using CommandFileReader = std::function<Result<std::string>(const std::string& path)>;

// `names`: the parameters and dimensions. `spec`: the path of the spec.
Result<CommandKernel> read_command(const Toml& node, const std::vector<std::string>& names,
                                   const std::string& spec, const CommandFileReader& read);

// The text with every {NAME} replaced; {{ and }} are braces. REQUIRES: read_command accepted it.
std::string fill_template(std::string_view text, const std::map<std::string, std::string>& values);

// What placeholders can name in addition to parameters and dimensions.
inline constexpr std::string_view kSpecFolder = "spec";    // the folder of the spec
inline constexpr std::string_view kOutputFile = "output";  // a file for the times, of `run`
inline constexpr std::string_view kStandardOutput = "stdout";

}  // namespace purlin
