// SPDX-License-Identifier: Apache-2.0
#include "profile/import/chrome/raw_values.h"

#include "base/hash.h"
#include "profile/import/chrome/json_scan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxInputs = 256;       // of one op
constexpr std::size_t kMaxDimensions = 16;    // of one input
constexpr std::size_t kMaxRawMembers = 4096;  // of one list of tensors

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view raw) {
  while (!raw.empty() && raw.front() == ' ') raw.remove_prefix(1);
  while (!raw.empty() && raw.back() == ' ') raw.remove_suffix(1);
  return raw;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// Four hexadecimal digits at `at`; nothing where they are not there.
std::optional<std::uint32_t> hex4(std::string_view raw, std::size_t at) {
  std::uint32_t code = 0;
  if (at + 4 > raw.size()) return std::nullopt;
  const auto [behind, failed] = std::from_chars(raw.data() + at, raw.data() + at + 4, code, 16);
  if (failed != std::errc{} || behind != raw.data() + at + 4) return std::nullopt;
  return code;
}

// Bytes of the UTF-8 sequence at the start of `text`, 0 without one.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  if (byte(0) < 0x80) return 1;
  if (byte(0) >= 0xC2 && byte(0) < 0xE0) length = 2;
  if (byte(0) >= 0xE0 && byte(0) < 0xF0) length = 3;
  if (byte(0) >= 0xF0 && byte(0) < 0xF5) length = 4;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

// The escape at `at`, which is behind the backslash; moves `at` behind it.
void append_escape(std::string& out, std::string_view raw, std::size_t& at) {
  const char c = raw[at++];
  switch (c) {
    case 'n':
    case 't':
    case 'r':
    case 'b':
    case 'f':
      out += ' ';  // control characters have no place in a name
      return;
    case 'u':
      break;
    default:
      out += c;
      return;
  }
  std::optional<std::uint32_t> code = hex4(raw, at);
  if (!code) {
    out += 'u';
    return;
  }
  at += 4;
  if (*code >= 0xD800 && *code < 0xDC00 && raw.substr(at, 2) == "\\u") {
    const std::optional<std::uint32_t> low = hex4(raw, at + 2);
    if (low && *low >= 0xDC00 && *low < 0xE000) {
      code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
      at += 6;
    }
  }
  if (*code >= 0xD800 && *code < 0xE000) code = 0xFFFD;
  append_utf8(out, *code < 0x20 ? ' ' : *code);
}

// The items of a JSON array, raw, strings without their quotes.
template <class Visit>
void for_each_item(std::string_view array, Visit visit) {
  if (array.size() < 2 || array.front() != '[') return;
  std::size_t at = 1;
  while (at < array.size()) {
    const char c = array[at];
    if (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t') {
      ++at;
      continue;
    }
    if (c == ']' || c == '}') return;
    const std::size_t begin = at;
    std::int64_t depth = 0;
    bool in_text = false;
    for (; at < array.size(); ++at) {
      const char d = array[at];
      if (in_text) {
        if (d == '\\') ++at;
        if (d == '"') in_text = false;
      } else if (d == '"') {
        in_text = true;
      } else if (d == '[' || d == '{') {
        ++depth;
      } else if (d == ']' || d == '}') {
        if (depth == 0) break;
        if (--depth == 0) {
          ++at;
          break;
        }
      } else if (d == ',' && depth == 0) {
        break;
      }
    }
    std::string_view item = trimmed(array.substr(begin, std::min(at, array.size()) - begin));
    if (item.size() >= 2 && item.front() == '"' && item.back() == '"')
      item = item.substr(1, item.size() - 2);
    if (!visit(item)) return;
  }
}

// "[64, 1024]".
void append_dims(std::string_view raw, std::vector<std::int64_t>& dims) {
  for_each_item(raw, [&](std::string_view item) {
    if (!item.empty() && item.front() == '[') return false;
    dims.push_back(to_int(item));
    return dims.size() < kMaxDimensions;
  });
}

// The same, or a list of such for a list of tensors.
void read_dims(std::string_view raw, OpInput& input) {
  const std::size_t inner = raw.find('[', 1);
  if (inner == std::string_view::npos) {
    append_dims(raw, input.dimensions);
    return;
  }
  for_each_item(raw, [&](std::string_view item) {
    append_dims(item, input.members.emplace_back());
    return input.members.size() < kMaxRawMembers;
  });
  if (!input.members.empty()) input.dimensions = input.members.front();
}

}  // namespace

std::int64_t to_int(std::string_view raw, std::int64_t fallback) {
  raw = trimmed(raw);
  std::int64_t value = 0;
  const auto [behind, failed] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (failed == std::errc{} && behind == raw.data() + raw.size()) return value;
  const std::optional<double> real = to_double(raw);
  if (!real) return fallback;
  constexpr double kMaxInteger = 9.2e18;
  return static_cast<std::int64_t>(std::clamp(*real, -kMaxInteger, kMaxInteger));
}

std::uint32_t to_u32(std::string_view raw) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(to_int(raw), 0, std::numeric_limits<std::uint32_t>::max()));
}

std::uint64_t to_u64(std::string_view raw) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, to_int(raw)));
}

std::optional<double> to_double(std::string_view raw) {
  raw = trimmed(raw);
  double value = 0;
  const auto [behind, failed] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (failed != std::errc{} || behind != raw.data() + raw.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::uint64_t> to_id(std::string_view raw) {
  raw = trimmed(raw);
  if (raw.empty()) return std::nullopt;
  int base = 10;
  if (raw.size() > 2 && raw[0] == '0' && (raw[1] == 'x' || raw[1] == 'X')) {
    raw.remove_prefix(2);
    base = 16;
  } else {
    std::size_t begin = raw.size();
    while (begin > 0 && is_digit(raw[begin - 1])) --begin;
    raw.remove_prefix(begin);
  }
  std::uint64_t value = 0;
  const auto [behind, failed] = std::from_chars(raw.data(), raw.data() + raw.size(), value, base);
  if (failed != std::errc{} || raw.empty()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> us_to_ns(std::string_view raw) {
  constexpr std::int64_t kMaxUs =
      4'000'000'000'000'000;  // the year 2096, in ns well inside 64 bits
  std::size_t at = 0;
  const bool negative = !raw.empty() && raw[0] == '-';
  if (negative) ++at;
  std::int64_t us = 0;
  const std::size_t begin = at;
  while (at < raw.size() && is_digit(raw[at]) && at - begin < 18) us = us * 10 + (raw[at++] - '0');
  std::int64_t ns = 0;
  bool plain = at > begin;
  if (at < raw.size() && raw[at] == '.') {
    ++at;
    const std::size_t point = at;
    for (int scale = 100; at < raw.size() && is_digit(raw[at]); ++at, scale /= 10)
      ns += (raw[at] - '0') * scale;
    // XLA writes 12.487999999999 for 12.488.
    if (at > point + 3 && raw[point + 3] >= '5') ++ns;
  }
  plain = plain && at == raw.size();
  if (plain) {
    if (us > kMaxUs) return std::nullopt;
    ns += us * 1000;
    return negative ? -ns : ns;
  }
  const std::optional<double> real = to_double(raw);
  if (!real || std::abs(*real) > static_cast<double>(kMaxUs)) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(*real * 1000));
}

Dim3 to_dim3(std::string_view raw) {
  Dim3 out = {1, 1, 1};
  std::size_t i = 0;
  for_each_item(raw, [&](std::string_view item) {
    const std::int64_t value = to_int(item, 1);
    out[i++] = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(value, 0, std::numeric_limits<std::uint32_t>::max()));
    return i < out.size();
  });
  return out;
}

std::string_view detail_of(std::string_view details, std::string_view key) {
  for (std::size_t at = details.find(key); at != std::string_view::npos;
       at = details.find(key, at + 1)) {
    const std::size_t behind = at + key.size();
    if ((at > 0 && details[at - 1] != ' ' && details[at - 1] != '\n') || behind >= details.size() ||
        details[behind] != ':')
      continue;
    const std::string_view rest = details.substr(behind + 1);
    return rest.substr(0, rest.find_first_of(" \n"));
  }
  return {};
}

std::string to_text_value(std::string_view raw, std::size_t max_bytes) {
  std::string out;
  out.reserve(std::min(raw.size(), max_bytes));
  for (std::size_t at = 0; at < raw.size() && out.size() < max_bytes;) {
    const std::size_t length = sequence_length(raw.substr(at));
    if (raw[at] == '\\' && at + 1 < raw.size()) {
      ++at;
      append_escape(out, raw, at);
    } else if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++at;
    } else if (static_cast<unsigned char>(raw[at]) < 0x20) {
      out += ' ';
      ++at;
    } else {
      out.append(raw, at, length);
      at += length;
    }
  }
  return out;
}

std::vector<OpInput> to_inputs(std::string_view dims, std::string_view types,
                               std::string_view concrete) {
  std::vector<OpInput> inputs;
  for_each_item(dims, [&](std::string_view item) {
    read_dims(item, inputs.emplace_back());
    return inputs.size() < kMaxInputs;
  });
  std::size_t i = 0;
  for_each_item(types, [&](std::string_view item) {
    if (i < inputs.size()) inputs[i].dtype = item;
    return ++i < inputs.size();
  });
  i = 0;
  for_each_item(concrete, [&](std::string_view item) {
    if (i < inputs.size()) inputs[i].concrete = item;
    return ++i < inputs.size();
  });
  return inputs;
}

std::string dims_text(const std::vector<OpInput>& inputs) {
  constexpr std::size_t kMaxRawText = 256;
  std::string out;
  for (const OpInput& input : inputs) {
    if (input.dimensions.empty()) continue;
    if (out.size() > kMaxRawText) return out + ",…";
    if (!out.empty()) out += ',';
    for (std::size_t i = 0; i < input.dimensions.size(); ++i)
      out += (i > 0 ? "x" : "") + std::to_string(input.dimensions[i]);
  }
  return out;
}

Names::Names() { of_text(""); }

std::uint32_t Names::of_raw(std::string_view raw) {
  const std::uint64_t hash = hash64(raw);
  const std::uint32_t known = by_raw_.find(hash);
  if (known != IdTable::kAbsent) return known;
  const std::uint32_t index = of_text(to_text_value(raw, kMaxNameBytes));
  if (!full_) by_raw_.find_or_add(hash, index);
  return index;
}

std::uint32_t Names::of_text(std::string text) {
  constexpr std::size_t kPerName = 64;  // what a short one takes all the same
  if (bytes_ > kMaxAllBytes && !full_) {
    text = "(other names)";
    full_ = true;
  } else if (full_) {
    const std::uint32_t known = by_text_.find(hash64(text));
    if (known != IdTable::kAbsent) return known;
    return static_cast<std::uint32_t>(texts_.size() - 1);
  }
  const auto next = static_cast<std::uint32_t>(texts_.size());
  const std::uint32_t known = by_text_.find_or_add(hash64(text), next);
  if (known != IdTable::kAbsent) return known;
  bytes_ += text.size() + kPerName;
  texts_.push_back(std::move(text));
  return next;
}

}  // namespace purlin::profile
