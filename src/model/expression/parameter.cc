// SPDX-License-Identifier: Apache-2.0
#include "model/expression/parameter.h"

#include "base/json/json.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

constexpr std::size_t kMaxTextBytes = 1024;
constexpr double kBeyond64Bits = 0x1p63;

// Whether a command line keeps the character within the word it is in.
bool stays_in_a_word(char c) {
  constexpr std::string_view kSpecial = "'\"`\\;$#";
  return static_cast<unsigned char>(c) > 0x20 && c != 0x7F &&
         kSpecial.find(c) == std::string_view::npos;
}

}  // namespace

bool is_identifier(std::string_view name) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 128 && !(name[0] >= '0' && name[0] <= '9') &&
         std::all_of(name.begin(), name.end(), is_part);
}

Status check_parameter_value(std::string_view name, const Value& value) {
  if (const auto* real = std::get_if<double>(&value)) {
    if (std::fabs(*real) < kBeyond64Bits) return Status::ok();
    return error(Code::kInvalid, "parameter '{}' is {}: a value is a number within 64 bits", name,
                 to_text(value));
  }
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return Status::ok();
  if (text->size() <= kMaxTextBytes && std::all_of(text->begin(), text->end(), stays_in_a_word))
    return Status::ok();
  return error(Code::kInvalid,
               "parameter '{}' is {}: as a compiler option, a text has no spaces, quotes, control "
               "characters, '\\', ';', '$' or '#', and at most {} bytes",
               name, json_quote(std::string_view(*text).substr(0, 80)), kMaxTextBytes);
}

Status check_parameters(const Config& config) {
  for (const auto& [name, value] : config.items()) {
    if (!is_identifier(name))
      return error(Code::kInvalid,
                   "a parameter is called {}: a name has letters, digits and '_', and does not "
                   "start with a digit",
                   json_quote(std::string_view(name).substr(0, 80)));
    PURLIN_TRY(check_parameter_value(name, value));
  }
  return Status::ok();
}

}  // namespace purlin
