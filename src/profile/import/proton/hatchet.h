// SPDX-License-Identifier: Apache-2.0
// Triton Proton's profiles (.hatchet): a tree of scopes and kernels with summed times, then the
// devices. Totals per kernel and scope, without launches. The document is held in memory, so its
// size is bounded.
#pragma once

#include "profile/import/import.h"
#include "profile/import/input.h"

#include <string>
#include <string_view>

namespace purlin::profile {

bool looks_like_hatchet(std::string_view prefix);
// The same over any input: fuzzing.
Result<Profile> import_hatchet(Input input, const std::string& name, const ImportOptions& options);

}  // namespace purlin::profile
