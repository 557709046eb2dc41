// SPDX-License-Identifier: Apache-2.0
// The evaluations of finished sessions, stored next to the cache. Later sessions use them on other
// devices, at other shapes, and under other toolkits. The path is
// CACHE/evaluations/KERNEL-ID.json.gz: one file for each kernel, device, toolkit, source, policy
// and problem, with at most 20,000 configs in each. docs/formats/evaluations.md describes the file.
//
// Files are whole or absent; the last session to end wins. Thread-safety: free functions, safe from
// any process. Failure: kIo; a file that cannot be read is no evaluation, never an error.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "gpu/replay/recording.h"

#include <string>
#include <vector>

namespace purlin::tune {

// The document, without its environment. Configs are places in the parameters' lists of values.
Json stored_evaluations_json(const gpu::Recording& recording);
Result<gpu::Recording> stored_evaluations_from_json(const Json& json);

// Where a session's evaluations belong. `directory` is the cache's; `id` names all that makes them
// comparable.
std::string evaluations_path(const std::string& directory, const std::string& kernel,
                             const std::string& id);
Status store_evaluations(const std::string& path, const gpu::Recording& recording);
// Those of one kernel, by name; at most `at_most`. `skipped` counts files
// that could not be read.
std::vector<gpu::Recording> find_evaluations(const std::string& directory,
                                             const std::string& kernel, std::size_t at_most,
                                             std::size_t& skipped);

}  // namespace purlin::tune
