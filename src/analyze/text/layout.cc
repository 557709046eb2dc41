// SPDX-License-Identifier: Apache-2.0
#include "analyze/text/layout.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

// Three significant digits: 1.23, 12.3, 123.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

}  // namespace

std::string clean(std::string_view text) {
  std::string out(text);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto c = static_cast<unsigned char>(out[i]);
    // C1 controls, U+0080 to U+009F, are terminal commands too.
    const bool c1 =
        c == 0xC2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xA0;
    if (c < 0x20 || c == 0x7F) out[i] = '?';
    if (c1) out[i] = out[i + 1] = '?';
  }
  return out;
}

std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string short_ns(double ns) {
  const double size = std::abs(ns);
  if (size < 999.5) return fmt::format("{:.0f} ns", ns);
  if (size < 999.5e3) return three_digits(ns / 1e3) + " us";
  if (size < 999.5e6) return three_digits(ns / 1e6) + " ms";
  return three_digits(ns / 1e9) + " s";
}

std::string si(double value, std::string_view unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int prefix = 0;
  while (std::abs(value) >= 999.5 && prefix < 6) value /= 1000, ++prefix;
  return fmt::format("{} {}{}", three_digits(value), kPrefixes[prefix], unit);
}

std::string spaced_words(std::string_view identifier) {
  std::string out(identifier);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

// Traces know a driver by the newest toolkit that it serves.
std::string driver_text(std::string_view driver) {
  const bool toolkit = driver.starts_with("CUDA") || driver.starts_with("HIP");
  return (toolkit ? "driver for " : "driver ") + std::string(driver);
}

std::string fold(std::string_view text, std::string_view indent, std::size_t width) {
  std::string out, line(indent);
  for (const std::string& word : split(text, ' ')) {
    const bool fresh = line.size() == indent.size();
    if (!fresh && visible_width(line) + 1 + visible_width(word) > width) {
      out += line + "\n";
      line = indent;
    } else if (!fresh) {
      line += ' ';
    }
    line += visible_width(word) > width ? elide_middle(word, width - indent.size()) : word;
  }
  return out + line + "\n";
}

std::size_t text_width(const Terminal& terminal) {
  return static_cast<std::size_t>(std::max(60, terminal.width()));
}

std::string painted(Style style, std::string_view text, std::string_view indent,
                    const Terminal& terminal) {
  std::string out;
  for (const std::string& line : split(fold(text, indent, text_width(terminal)), '\n'))
    if (!line.empty()) out += terminal.paint(style, line) + "\n";
  return out;
}

std::vector<std::string> wrap_name(std::string_view name, std::size_t width, std::size_t lines) {
  std::vector<std::string> out;
  const std::string text = elide_middle(name, width * lines);
  std::string_view rest = text;
  while (!rest.empty()) {
    std::size_t end = bytes_within(rest, width);
    if (end == 0) end = rest.size();
    if (end < rest.size() && out.size() + 1 < lines) {
      const std::size_t at = rest.substr(0, end).find_last_of("_,<> :&*/-)");
      // Only where the lines that are left can hold the rest.
      const std::size_t left = (lines - out.size() - 1) * width;
      if (at != std::string_view::npos && at + 1 >= end * 2 / 3 && rest.size() - at - 1 <= left)
        end = at + 1;
    }
    out.emplace_back(trim(rest.substr(0, end)));
    rest.remove_prefix(end);
  }
  if (out.empty()) out.emplace_back();
  return out;
}

std::string stacked_bar(const std::vector<BarPart>& parts, int cells, const Terminal& terminal) {
  std::string out;
  double sum = 0;
  int drawn = 0;
  for (const BarPart& part : parts) {
    sum += std::isfinite(part.share) ? std::max(0.0, part.share) : 0;
    const int until = std::clamp(static_cast<int>(std::lround(sum * cells)), drawn, cells);
    std::string run;
    for (; drawn < until; ++drawn) run += terminal.utf8() ? part.utf8 : part.ascii;
    out += terminal.paint(part.style, run);
  }
  return out;
}

}  // namespace purlin::analyze
