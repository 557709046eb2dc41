// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/op_text.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace purlin::profile::capture {
namespace {

constexpr std::string_view kSizes = ", sizes = ";
constexpr std::array<std::string_view, 4> kKeys = {", seq = ", ", op_id = ", kSizes,
                                                   ", input_op_ids = "};
// Namespaces of operators that PyTorch dispatches: those need no key to be recognised as ops.
constexpr std::array<std::string_view, 6> kSpaces = {
    "aten::", "prims::", "c10d::", "torch::", "quantized::", "torchvision::"};
constexpr std::size_t kMaxOpName = 200;

bool begins(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// The list of lists that text begins with; empty where it does not end.
std::string_view list_of(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[') ++depth;
    if (c == ']' && --depth == 0) return text.substr(0, i + 1);
    const bool inside = c == '[' || c == ']' || c == ',' || c == ' ' || c == '-';
    if (depth == 0 || (!inside && (c < '0' || c > '9'))) break;
  }
  return {};
}

void append(OpText& out, std::string_view text) {
  std::memcpy(out.bytes + out.size, text.data(), text.size());
  out.size += text.size();
}

// No more bytes than that, and no character in half.
std::string_view shortened(std::string_view name, std::size_t most) {
  if (name.size() <= most) return name;
  while (most > 0 && (static_cast<unsigned char>(name[most]) & 0xc0) == 0x80) --most;
  return name.substr(0, most);
}

}  // namespace

void read_range_name(std::string_view name, OpText& out) {
  out.size = 0;
  out.is_op = false;
  name = name.substr(0, kMaxRangeName);
  std::size_t end = name.size();
  std::string_view sizes;
  for (std::size_t at = name.find(", "); at != std::string_view::npos; at = name.find(", ", at)) {
    const std::string_view rest = name.substr(at);
    bool known = false;
    for (const std::string_view key : kKeys) {
      if (!begins(rest, key)) continue;
      known = true;
      if (key == kSizes) sizes = list_of(rest.substr(kSizes.size()));
      break;
    }
    if (known && end == name.size()) end = at;
    // Commas of the list are no keys.
    at += known && !sizes.empty() ? kSizes.size() + sizes.size() : 2;
    if (!sizes.empty()) break;
  }
  out.is_op = end < name.size();
  for (const std::string_view space : kSpaces) out.is_op = out.is_op || begins(name, space);
  append(out, shortened(name.substr(0, end), kMaxOpName));
  if (!sizes.empty() && out.size + kSizes.size() + sizes.size() <= kMaxOpText) {
    append(out, kSizes);
    append(out, sizes);
  }
}

void read_range_name(const wchar_t* name, OpText& out) {
  char utf8[kMaxOpText * 4];
  std::size_t size = 0;
  for (std::size_t i = 0; i < kMaxOpText && name[i] != 0; ++i) {
    const auto c = static_cast<std::uint32_t>(name[i]);
    const auto put = [&](std::uint32_t byte) { utf8[size++] = static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6), put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
    } else if (c < 0x110000) {
      put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f));
      put(0x80 | (c & 0x3f));
    }
  }
  read_range_name(std::string_view(utf8, size), out);
}

std::string_view op_name(std::string_view op_text) {
  return op_text.substr(0, op_text.find(kSizes));
}

}  // namespace purlin::profile::capture
