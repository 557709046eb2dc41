// SPDX-License-Identifier: Apache-2.0
// Text inside HTML, SVG and XML. [MT]; cannot fail.
#pragma once

#include <string>
#include <string_view>

namespace purlin {

// For an element's text or an attribute in double quotes. Line feeds are kept as &#10;. Other
// control characters but tabs, marks that turn the text's direction, and what XML 1.0 cannot say
// are left out. Bytes that are no UTF-8 become U+FFFD.
std::string markup_escaped(std::string_view text);

}  // namespace purlin
