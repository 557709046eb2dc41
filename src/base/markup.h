// SPDX-License-Identifier: Apache-2.0
// Text inside HTML, SVG and XML. [MT]; cannot fail.
#pragma once

#include <string>
#include <string_view>

namespace purlin {

// For an element's text or an attribute in double quotes. Line feeds are kept as &#10;; other
// control characters but tabs, which XML 1.0 cannot say at all, are left out.
std::string markup_escaped(std::string_view text);

}  // namespace purlin
