// SPDX-License-Identifier: Apache-2.0
// [kernel] and [reference] of a spec: source files by language, with their options and headers.
// Private to model/spec. A free function; a failure names the place in the spec.
#pragma once

#include "base/status.h"
#include "base/toml.h"
#include "model/spec/spec.h"

#include <map>
#include <string>
#include <string_view>

namespace purlin {

// `what` is the table's name. `spec` is the file of the spec, to whose folder names are relative.
Result<std::map<std::string, SourceText>> read_sources(TomlTable& table, std::string_view what,
                                                       const std::string& spec,
                                                       const SourceReader& read);

}  // namespace purlin
