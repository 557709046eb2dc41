// SPDX-License-Identifier: Apache-2.0
#include "model/spec/default_reference.h"

#include "model/spec/nodes.h"

#include <cctype>

namespace purlin {
namespace {

// Names in an expression's text replaced by other texts; `replace` yields nullopt for those to
// keep. Texts in quotes and numbers are left alone.
template <class Replace>
std::string replace_names(std::string_view text, const Replace& replace) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (text[at] == '\'' || text[at] == '"') {
      const std::size_t close = text.find(text[at], at + 1);
      at = close == std::string_view::npos ? text.size() : close + 1;
      out += text.substr(begin, at - begin);
    } else if (is_part(text[at])) {
      while (at < text.size() && is_part(text[at])) ++at;
      const std::string_view word = text.substr(begin, at - begin);
      const bool number = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
      out += number ? std::string(word) : replace(word).value_or(std::string(word));
    } else {
      out += text[at++];
    }
  }
  return out;
}

// An expression with the parameters' values of the config in place of their names.
SpecExpression fixed(const SpecExpression& expression, const Config& config) {
  const std::string text = replace_names(expression.expression.text(), [&](std::string_view name) {
    const Value* value = config.find(name);
    return value != nullptr ? std::optional("(" + spec_nodes::literal(*value) + ")") : std::nullopt;
  });
  return {Expression::parse(text).value_or(Expression()), expression.where};
}

}  // namespace

Reference default_config_reference(const KernelSpec& spec) {
  return default_config_reference(spec, default_config(spec));
}

Reference default_config_reference(const KernelSpec& spec, const Config& config) {
  Reference reference;
  reference.is_default_config = true;
  reference.entry = spec.entry;
  reference.sources = spec.sources;
  for (auto& [language, source] : reference.sources)
    for (const auto& [name, value] : config.items()) {
      const auto* flag = std::get_if<bool>(&value);
      source.options.push_back(fmt::format(
          "-D{}={}", name, flag != nullptr ? std::string(*flag ? "1" : "0") : to_text(value)));
    }
  for (const SpecExpression& side : spec.launch.grid)
    reference.launch.grid.push_back(fixed(side, config));
  for (const SpecExpression& side : spec.launch.block)
    reference.launch.block.push_back(fixed(side, config));
  if (spec.launch.dynamic_shared_bytes)
    reference.launch.dynamic_shared_bytes = fixed(*spec.launch.dynamic_shared_bytes, config);
  for (const Argument& argument : spec.arguments) reference.arguments.push_back(argument.name);
  return reference;
}

}  // namespace purlin
