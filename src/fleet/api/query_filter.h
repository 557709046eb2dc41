// SPDX-License-Identifier: Apache-2.0
// The filters of queries, as parameters of a URL. Pure functions over foreign text. Failure:
// kInvalid names the parameter and what it takes.
#pragma once

#include "fleet/endpoint.h"
#include "store/filter.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet {

// "begin", "end" and every dimension.
std::vector<Parameter> filter_parameters();
// With those of the endpoint itself.
std::vector<Parameter> filter_parameters(std::vector<Parameter> own);

// Times are RFC 3339, seconds since 1970, or "-7d" before now; without them the last seven days.
Result<store::Filter> parse_filter(const NamedValues& query, std::int64_t now_ns);
Result<std::int64_t> parse_time(std::string_view text, std::int64_t now_ns);
Result<store::Step> parse_step(std::string_view text, store::Step otherwise);
// "kernel,build"
Result<std::vector<store::Dimension>> parse_dimensions(std::string_view text);
// Between 1 and `most`.
Result<std::size_t> parse_limit(std::string_view text, std::size_t otherwise, std::size_t most);

}  // namespace purlin::fleet
