// SPDX-License-Identifier: Apache-2.0
// What every persisted document and every --json output starts with.
#pragma once

#include "base/json/json.h"
#include "model/device/device.h"

#include <string_view>

namespace purlin {

class JsonView;

// {"schema": "purlin.report/1", "tool_version": "0.1.0", "environment": {…}}; the caller adds the
// rest.
Json new_document(std::string_view schema, const Environment& environment);

// Checks "schema" of a document read back: same name and a major version not above `version`.
// kInvalid when it is another kind of document, kCorrupt ("written by a newer Purlin") when newer.
Status check_schema(const Json& document, std::string_view name, int version);
Status check_schema(const JsonView& document, std::string_view name, int version);

}  // namespace purlin
