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

// The source of a content security policy that allows the text with this SHA-256 (64 hexadecimal
// digits): 'sha256-…'.
std::string policy_source(std::string_view sha256_hex);

// A whole page without scripts. Its policy allows this style and nothing else. `title` is text,
// `body` is markup.
std::string static_page(std::string_view title, std::string_view style, std::string_view body);

// A label of a drawing. `anchor`: start, middle or end.
std::string svg_text(double x, double y, std::string_view text, std::string_view anchor);

}  // namespace purlin
