// SPDX-License-Identifier: Apache-2.0
// JSON as some programs write it, made valid. Python's json.dumps and Google Benchmark write NaN
// and Infinity. Tuners that append to a file leave its brackets open until they end. Pure
// functions over text; they never fail, because the parser that comes after reports faults.
#pragma once

#include <string>
#include <string_view>

namespace purlin {

// NaN, Infinity and -Infinity outside of texts become null. Lines are kept.
std::string without_non_finite(std::string_view json);

// Ends a document that stops before its last brackets. It is cut behind the last complete value at
// `depth`; 1 means the members of the outermost object. Brackets that are open there are closed.
// "" where the document is complete, has a wrong bracket, or has no such value.
std::string closed_json(std::string_view json, std::size_t depth);

}  // namespace purlin
