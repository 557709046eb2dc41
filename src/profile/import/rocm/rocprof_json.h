// SPDX-License-Identifier: Apache-2.0
// rocprofv3's JSON (--output-format json): the records of rocprofiler-sdk under
// "rocprofiler-sdk-tool". The document is held in memory, so its size is bounded.
#pragma once

#include "profile/import/import.h"
#include "profile/import/input.h"

#include <string>
#include <string_view>

namespace purlin::profile {

bool looks_like_rocprof_json(std::string_view prefix);
// The same over any input: fuzzing.
Result<Profile> import_rocprof_json(Input input, const std::string& name,
                                    const ImportOptions& options);

}  // namespace purlin::profile
