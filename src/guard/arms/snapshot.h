// SPDX-License-Identifier: Apache-2.0
// Snapshot: a spec and every file that it compiles, by content. A baseline holds it, and a later
// check unpacks it into a private folder and runs the recorded kernel.
//
// Thread-safety: a value type. A snapshot read from a file is foreign input: a name that leaves the
// folder of the snapshot is an error.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "model/spec/spec.h"

#include <string>
#include <vector>

namespace purlin::guard {

struct Snapshot {
  struct File {
    std::string path;  // relative, with '/'
    std::string text;
  };
  std::string spec;  // the path of the spec among `files`
  std::vector<File> files;

  // 32 hex digits over names and contents: equal snapshots run the same code.
  std::string id() const;
};

// The spec, its sources, its reference's sources, and every file that they #include "by name".
Result<Snapshot> take_snapshot(const KernelSpec& spec);
// Writes the files under `folder`; returns the path of the spec there.
Result<std::string> unpack(const Snapshot& snapshot, const std::string& folder);

Json to_json(const Snapshot& snapshot);
Result<Snapshot> snapshot_from_json(const Json& json);

}  // namespace purlin::guard
