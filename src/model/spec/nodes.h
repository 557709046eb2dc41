// SPDX-License-Identifier: Apache-2.0
// What the nodes of a spec's TOML may hold: names, values, expressions, each checked where it
// stands. Shared by the readers of a spec's parts. Pure functions; a failure says the file, the
// line and what would do.
#pragma once

#include "base/toml.h"
#include "model/spec/spec.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::spec_nodes {

// "; did you mean 'tile'?", or what there is to choose from; "" where there is nothing.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);
// A name that expressions can use: an identifier that means nothing else there.
Status check_name(const Toml& node, std::string_view name);
// "gemm", "layer-norm.v2": used in file names and keys.
Status check_label(const Toml& node, std::string_view key, std::string_view label);
Result<Value> to_value(const Toml& node);
// A value as the expression language writes it.
std::string literal(const Value& value);
Result<SpecExpression> to_expression(const Toml& node, std::string_view what);
// A list of expressions, or one alone.
Result<std::vector<SpecExpression>> to_expressions(const Toml& node, std::string_view what,
                                                   std::size_t most);
Result<std::int64_t> to_extent(const Toml& node, std::string_view name);

}  // namespace purlin::spec_nodes
