// SPDX-License-Identifier: Apache-2.0
// Percent-encoding of paths and queries (RFC 3986). Pure functions over foreign text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace purlin::fleet {

// nullopt where a '%' is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);
// All bytes that are not unreserved are encoded.
std::string percent_encoded(std::string_view text);

}  // namespace purlin::fleet
