// SPDX-License-Identifier: Apache-2.0
// The page of the server, for browsers: what GET / answers, to everyone. It holds no data: the page
// asks the API, with the token that the user gives it. A pure function.
#pragma once

#include "fleet/http.h"

#include <optional>

namespace purlin::fleet {

// Nothing for other paths and methods.
std::optional<HttpAnswer> page_answer(const HttpHead& head);

}  // namespace purlin::fleet
