// SPDX-License-Identifier: Apache-2.0
// Suite: the kernels of a gate, as a TOML file: spec x shape x config, with fixed inputs, tags and
// thresholds. docs/formats/suite.md is the reference of the file.
//
// Parsing checks the file itself. Specs, shapes and configs are resolved once a device is known
// (resolve.h). Thread-safety: immutable after loading. Failure: kInvalid with file:line:column.
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
  std::string shape;      // for resolve_shape(): "", a preset's name or "M=512"
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

// Only the items with one of the tags; all items when `tags` is empty. kInvalid when none remains.
Result<Suite> with_tags(Suite suite, const std::vector<std::string>& tags);

}  // namespace purlin::guard
