// SPDX-License-Identifier: Apache-2.0
// Nsight Compute's CSV: whether a file is one. Importing is import_ncu_csv (import.h).
#pragma once

#include "profile/import/import.h"
#include "profile/import/input.h"

#include <string>

namespace purlin::profile {

// Looks through what the profiled program printed, some megabytes of it, for the table's header.
bool looks_like_ncu_csv(const std::string& path);
// The importer over an open input; the sniffing pass reads `again`. `name` is for messages.
Result<Profile> import_ncu_csv(Input input, Input again, const std::string& name,
                               const ImportOptions& options);

}  // namespace purlin::profile
