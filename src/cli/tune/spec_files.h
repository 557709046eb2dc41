// SPDX-License-Identifier: Apache-2.0
// Reads the specs of a verb that takes several of them. Free function. Failure: a named file that
// is no spec. In a folder, files that are no specs are skipped.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "model/spec/spec.h"

#include <string>
#include <vector>

namespace purlin::cli {

// The specs named, and every *.toml that is one in folders and their folders.
Result<std::vector<KernelSpec>> load_specs(const std::vector<std::string>& places, Log& log);

}  // namespace purlin::cli
