// SPDX-License-Identifier: Apache-2.0
// Snapshot: a spec and every file it compiles, by content, so that a later check can run the kernel
// as it was. Held in the baseline; unpacked into a private folder to be run.
//
// Thread-safety: a value type. Snapshots read from a file are foreign input: names that could leave
// the folder they are unpacked into are refused.
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

// The spec, its sources, its reference's sources, and whatever these #include "by name".
Result<Snapshot> take_snapshot(const KernelSpec& spec);
// Writes the files under `folder`; returns the path of the spec there.
Result<std::string> unpack(const Snapshot& snapshot, const std::string& folder);

Json to_json(const Snapshot& snapshot);
Result<Snapshot> snapshot_from_json(const Json& json);

}  // namespace purlin::guard
