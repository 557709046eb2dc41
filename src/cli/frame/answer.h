// SPDX-License-Identifier: Apache-2.0
// The answer of a verb on stdout: one JSON document with --json, else a text for people.
// Thread-safety: as the context's output. Failure: none.
#pragma once

#include "base/json/json.h"
#include "cli/frame/command.h"

#include <initializer_list>
#include <string_view>

namespace purlin::cli {

// A document of this host that begins with these members.
Json document_of(std::string_view schema, std::initializer_list<Json::Member> members);

void answer(const Context& context, bool json, const Json& document, std::string_view text);

}  // namespace purlin::cli
