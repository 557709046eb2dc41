// SPDX-License-Identifier: Apache-2.0
// Words and lines for the report's text: short figures, folded paragraphs, names that wrap instead
// of losing their middle. Pure functions. Texts from a profile are foreign: clean() them first, or
// a kernel's name could move the reader's cursor.
#pragma once

#include "base/output/terminal.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

std::string clean(std::string_view text);               // control characters become '?'
std::string percent(double share);                      // 0.533 -> "53.3%"
std::string short_ns(double ns);                        // three digits: "1.23 ms", "900 us"
std::string si(double value, std::string_view unit);    // 1.23e12, "FLOP/s" -> "1.23 TFLOP/s"
std::string spaced_words(std::string_view identifier);  // "host_launch" -> "host launch"
std::string driver_text(std::string_view driver);       // "driver 580.95", "driver for CUDA 13.0"

// Folds text at blanks so that no line is wider than `width`; each line starts with the indent.
std::string fold(std::string_view text, std::string_view indent, std::size_t width);
std::size_t text_width(const Terminal& terminal);  // in columns, at least 60
// A paragraph folded to text_width(), each line painted separately.
std::string painted(Style style, std::string_view text, std::string_view indent,
                    const Terminal& terminal);

// Breaks a name after '_', ',', '<', ' ' and the like where that is near the end of the line. What
// does not fit into `lines` loses its middle.
std::vector<std::string> wrap_name(std::string_view name, std::size_t width, std::size_t lines);

// One bar of several parts, `cells` wide, each part in its own character and colour. The shares are
// of the whole bar and need not add up to 1.
struct BarPart {
  double share = 0;
  Style style = Style::kPlain;
  std::string_view ascii, utf8;  // one column each
};
std::string stacked_bar(const std::vector<BarPart>& parts, int cells, const Terminal& terminal);

}  // namespace purlin::analyze
