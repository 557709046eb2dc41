// SPDX-License-Identifier: Apache-2.0
// Every environment variable that a part of Purlin reads, or gives to a program, apart from those
// of the settings. They are the source of docs/reference/environment.md and of `purlin config`.
// scripts/check_names compares them with the code. A pure function; no failure.
#pragma once

#include <string>
#include <vector>

namespace purlin::cli {

struct Variable {
  std::string name;
  std::string text;     // no final full stop
  bool secret = false;  // the value is not shown
};

struct VariableGroup {
  std::string title;  // of a chapter
  std::string text;   // a paragraph
  std::vector<Variable> variables;
};

std::vector<VariableGroup> variable_groups();

}  // namespace purlin::cli
