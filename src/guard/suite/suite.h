// SPDX-License-Identifier: Apache-2.0
// Suite: the kernels a gate watches, as a TOML file lists them: spec x shape x config, with pinned
// inputs, tags and thresholds. docs/formats/suite.md is the reference of the file.
//
// Parsing checks the file itself; specs, shapes and configs are resolved when a device is known
// (guard/target.h). Thread-safety: immutable after loading. Failure: kInvalid with
// file:line:column.
#pragma once

#include "base/status.h"
#include "guard/gate/gate.h"
#include "guard/suite/command_suite.h"
#include "measure/timing.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::guard {

struct SuiteItem {
  std::string spec_path;  // resolved against the suite's folder
  std::string shape;      // as resolve_shape takes it: "", a preset's name or "M=512"
  std::string config;     // "cached", "default" or "BM=64,BN=32"
  std::vector<std::string> tags;
  Thresholds thresholds;
  std::string where;  // "gate.toml:12:1", for messages
};

struct Suite {
  std::string file;
  std::string name;
  std::string device = "auto";
  std::uint64_t seed = 0;        // added to each spec's seed: other contents, same shapes
  int rounds = 10;               // processes per item that a baseline records
  double timeout_s = 120;        // of one process, compilation included
  std::size_t per_process = 16;  // items that one process measures, one after the other
  measure::Policy policy;
  Design design;
  std::vector<SuiteItem> items;  // one per shape, in the file's order
  std::vector<CommandSpec> commands;
};

Result<Suite> parse_suite(std::string_view text, const std::string& path);
Result<Suite> load_suite(const std::string& path);

// Only the items that carry one of the tags; all of them when `tags` is empty. kInvalid when none
// is left.
Result<Suite> with_tags(Suite suite, const std::vector<std::string>& tags);

}  // namespace purlin::guard
