// SPDX-License-Identifier: Apache-2.0
// Specs as the verbs take several of them. Free function. Failure: of a file that was named; what
// is no spec in a folder is passed over.
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
