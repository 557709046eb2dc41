// SPDX-License-Identifier: Apache-2.0
// Chrome traces: which tool's a file is by its beginning, and the import over an Input that is open
// already (bytes in memory, for tests and fuzzing). docs/formats/import.md says what becomes of
// what. Pure functions; failure as in import.h.
#pragma once

#include "profile/import/import.h"
#include "profile/import/input.h"

#include <optional>
#include <string>
#include <string_view>

namespace purlin::profile {

// kKineto, kXla or kChrome; nothing where the text is no Chrome trace. A few kilobytes are enough.
std::optional<Format> looks_like_chrome_trace(std::string_view prefix);

// `name` is for messages.
Result<Profile> import_chrome_trace(Input input, const std::string& name,
                                    const ImportOptions& options);

}  // namespace purlin::profile
