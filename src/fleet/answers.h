// SPDX-License-Identifier: Apache-2.0
// Answers that all endpoints have in common. Pure functions.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "fleet/http.h"

#include <string_view>

namespace purlin::fleet {

// {"schema": SCHEMA, "tool_version": …}
Json answer_document(std::string_view schema);
HttpAnswer json_answer(const Json& json, int status = 200);
// {"schema": "purlin.error/1", …}
HttpAnswer error_answer(int status, std::string_view message);
HttpAnswer error_answer(const Status& status);

}  // namespace purlin::fleet
