// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include "base/output/columns.h"
#include "base/replace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cxxabi.h>
#include <limits>

namespace purlin {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_duration_s(std::string_view text) {
  const std::size_t unit_at = text.find_first_not_of("0123456789.");
  if (unit_at == std::string_view::npos) return std::nullopt;
  const std::optional<double> value = parse_double(text.substr(0, unit_at));
  const std::string_view unit = text.substr(unit_at);
  if (!value) return std::nullopt;
  if (unit == "ms") return *value / 1e3;
  if (unit == "s") return *value;
  if (unit == "m" || unit == "min") return *value * 60;
  if (unit == "h") return *value * 3600;
  if (unit == "d") return *value * 86400;
  return std::nullopt;
}

std::string format_ns(double ns) {
  const double size = std::abs(ns);
  if (size < 999.5) return fmt::format("{:.0f} ns", ns);
  if (size < 999.5e3) return fmt::format("{:.2f} us", ns / 1e3);
  if (size < 999.5e6) return fmt::format("{:.3f} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

std::string format_bytes(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  // Units change where the shown figure would: 1023.95 KiB is 1.0 MiB, not 1024.0 KiB.
  while (std::abs(bytes) >= (unit == 0 ? 1024 : 1023.95) && unit < 4) bytes /= 1024, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string format_count(double count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  int unit = 0;
  while (std::abs(count) >= (unit == 0 ? 999.5 : 999.995) && unit < 4) count /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:.0f}", count) : fmt::format("{:.2f}{}", count, kUnits[unit]);
}

std::string noun_for(double count, std::string_view noun) {
  std::string out(noun);
  if (count == 1 || out.empty()) return out;
  const auto ends = [&](std::string_view suffix) { return ends_with(out, suffix); };
  const bool vowel = out.size() > 1 &&
                     std::string_view("aeiou").find(out[out.size() - 2]) != std::string_view::npos;
  if (ends("y") && !vowel) {
    out.replace(out.size() - 1, 1, "ies");
  } else {
    out += ends("s") || ends("x") || ends("z") || ends("ch") || ends("sh") ? "es" : "s";
  }
  return out;
}

std::string counted(double count, std::string_view noun) {
  return format_count(count) + " " + noun_for(count, noun);
}

std::string elide_middle(std::string_view text, std::size_t width) {
  const std::size_t length = visible_width(text);
  if (length <= width) return std::string(text);
  if (width <= 3) return std::string(text.substr(0, bytes_within(text, width)));
  const std::size_t left = (width - 3 + 1) / 2;
  // The end is the longest that fits.
  std::string_view end = text;
  for (std::size_t rest = length; rest > width - 3 - left;) {
    const Glyph glyph = first_glyph(end);
    rest -= glyph.columns;
    end.remove_prefix(glyph.bytes);
  }
  return fmt::format("{}...{}", text.substr(0, bytes_within(text, left)), end);
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = static_cast<int>(i);
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 200;  // the distance takes time and memory by the product
  int best = std::numeric_limits<int>::max();
  std::string found;
  if (word.size() > kLongest) return found;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const int distance = edit_distance(word, candidate);
    if (distance < best) best = distance, found = candidate;
  }
  const int allowed = std::max(2, static_cast<int>(word.size()) / 3);
  return best <= allowed && best < static_cast<int>(word.size()) ? found : "";
}

std::string demangle(std::string_view name) {
  // Longer names take the demangler quadratic time, and no user can read them.
  if (!starts_with(name, "_Z") || name.size() > 8192) return std::string(name);
  std::string symbol(name);
  // The run-time library's demangler misreads the 16-bit floats of device code. Codes of two types
  // that device code has not stand in for them.
  const bool floats = symbol.find("DF16") != std::string::npos;
  if (floats) {
    symbol = replace_all(std::move(symbol), "DF16b", "g");
    symbol = replace_all(std::move(symbol), "DF16_", "Df");
  }
  int status = 0;
  char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return std::string(name);
  std::string out(text);
  std::free(text);
  if (floats) {
    out = replace_all(std::move(out), "__float128", "__bf16");
    out = replace_all(std::move(out), "decimal32", "_Float16");
  }
  return out;
}

}  // namespace purlin
