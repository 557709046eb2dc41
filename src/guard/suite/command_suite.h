// SPDX-License-Identifier: Apache-2.0
// CommandSpec: a command that prints times, as an entry of [[commands]] in a suite
// (docs/formats/suite.md). Value type. Parsing is a pure function; failures are kInvalid with
// file:line:column.
#pragma once

#include "base/status.h"
#include "base/toml.h"
#include "guard/gate/gate.h"
#include "measure/output/benchmark_output.h"

#include <map>
#include <string>
#include <vector>

namespace purlin::guard {

struct CommandSpec {
  std::string name;               // of the command, and the prefix of its items' names; may be ""
  std::vector<std::string> argv;  // may hold {output}
  std::string directory;          // relative to the arm's
  std::map<std::string, std::string> environment;
  OutputRules rules;
  double timeout_s = 600;
  double expected_s = 0;  // the time of a run, for planning; 0 = not known
  std::vector<std::string> tags;
  Thresholds thresholds;
  std::string where;  // "gate.toml:12:1", for messages; "" = the command line
};

Result<CommandSpec> parse_command(const Toml& node, const Thresholds& defaults);

// A table of variables, added to `environment`; null is none.
Status parse_environment(const Toml* node, std::map<std::string, std::string>* environment);

// Of a suite or of one of its items; `defaults` for absent values.
Result<Thresholds> parse_thresholds(const Toml* node, Thresholds defaults);

}  // namespace purlin::guard
