// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/schema.h"

#include "base/hash.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::profile::flow {
namespace {

constexpr std::size_t kMaxArguments = 256;

SchemaArgument argument_of(std::string_view text) {
  text = text.substr(0, text.find('='));
  const std::size_t space = text.find_last_of(' ');
  SchemaArgument argument;
  if (space == std::string_view::npos) return argument;
  argument.name = std::string(text.substr(space + 1));
  argument.written = text.substr(0, space).find('!') != std::string_view::npos;
  return argument;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

bool OpSchema::writes_any() const {
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const SchemaArgument& argument) { return argument.written; });
}

bool OpSchema::is_result(std::size_t argument) const {
  return writes(argument) && starts_with(arguments[argument].name, "out");
}

OpSchema parse_schema(std::string_view text) {
  OpSchema schema;
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return schema;
  schema.identity = hash64(text.substr(0, open));
  int depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = open; i < text.size() && schema.arguments.size() < kMaxArguments; ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    const bool ends = depth == 0;
    if (!ends && (c != ',' || depth != 1)) continue;
    const std::string_view part = trimmed(text.substr(begin, i - begin));
    if (!part.empty() && part != "*") {
      schema.generator = schema.generator || starts_with(part, "Generator");
      schema.arguments.push_back(argument_of(part));
    }
    if (ends) break;
    begin = i + 1;
  }
  return schema;
}

}  // namespace purlin::profile::flow
