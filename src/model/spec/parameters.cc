// SPDX-License-Identifier: Apache-2.0
#include "model/spec/parameters.h"

#include "base/text.h"
#include "model/spec/nodes.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace purlin {
namespace {

using namespace spec_nodes;

constexpr std::size_t kMaxValues = 65536;  // of one parameter

Status too_many(const Toml& node, const Parameter& parameter) {
  return node.complain(fmt::format("'{}' has more than {} values", parameter.name, kMaxValues));
}

Status read_values(const Toml& node, Parameter& parameter) {
  if (node.array() == nullptr)
    return node.complain(fmt::format("values of '{}' must be a list", parameter.name));
  if (node.array()->empty())
    return node.complain(fmt::format("'{}' has no values", parameter.name));
  if (node.array()->size() > kMaxValues) return too_many(node, parameter);
  std::set<std::pair<std::size_t, std::string>> seen;
  for (const Toml& item : *node.array()) {
    PURLIN_ASSIGN(Value value, to_value(item));
    if (!seen.emplace(value.index(), to_text(value)).second)
      return item.complain(fmt::format("'{}' lists {} twice", parameter.name, to_text(value)));
    parameter.values.push_back(std::move(value));
  }
  return Status::ok();
}

// The two ends of powers_of_two and range.
Result<std::pair<Value, Value>> read_ends(const Toml& node, std::string_view what) {
  if (node.array() == nullptr || node.array()->size() != 2)
    return node.complain(fmt::format("{} takes two ends: {} = [8, 64]", what, what));
  PURLIN_ASSIGN(Value low, to_value((*node.array())[0]));
  PURLIN_ASSIGN(Value high, to_value((*node.array())[1]));
  return std::pair{std::move(low), std::move(high)};
}

Status read_powers(const Toml& node, Parameter& parameter) {
  PURLIN_ASSIGN(const auto ends, read_ends(node, "powers_of_two"));
  const auto* low = std::get_if<std::int64_t>(&ends.first);
  const auto* high = std::get_if<std::int64_t>(&ends.second);
  const auto is_power = [](const std::int64_t* end) {
    return end != nullptr && *end > 0 && (*end & (*end - 1)) == 0;
  };
  if (!is_power(low) || !is_power(high) || *low > *high)
    return node.complain("powers_of_two takes two powers of two, the smaller first");
  // Stops before doubling past the end, which may be 2^62.
  for (std::int64_t value = *low;; value *= 2) {
    parameter.values.emplace_back(value);
    if (value == *high) return Status::ok();
  }
}

Status read_range(const Toml& node, const Toml* step_node, Parameter& parameter) {
  PURLIN_ASSIGN(const auto ends, read_ends(node, "range"));
  Value step = std::int64_t{1};
  if (step_node != nullptr) {
    PURLIN_ASSIGN(step, to_value(*step_node));
  }
  const auto number = [](const Value& value) {
    const bool usable =
        std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
    return usable ? to_double(value).value() : std::nan("");
  };
  const double low = number(ends.first), high = number(ends.second), by = number(step);
  if (!(low <= high)) return node.complain("range takes two numbers, the smaller first");
  if (!(by > 0)) return step_node->complain("step must be a positive number");
  // A real end counts as reached when only rounding keeps the last step from it.
  const double steps = std::floor((high - low) / by + 1e-9);
  if (!(steps < static_cast<double>(kMaxValues))) return too_many(node, parameter);
  const auto* first = std::get_if<std::int64_t>(&ends.first);
  const auto* stride = std::get_if<std::int64_t>(&step);
  for (int i = 0; i <= static_cast<int>(steps); ++i) {
    if (first != nullptr && stride != nullptr) {
      parameter.values.emplace_back(*first + i * *stride);
    } else {
      parameter.values.emplace_back(low + i * by);
    }
  }
  return Status::ok();
}

}  // namespace

Status read_parameter(const Toml& node, Parameter& parameter) {
  if (node.array() != nullptr) return read_values(node, parameter);
  if (node.table() == nullptr)
    return node.complain(
        fmt::format("'{0}' must be a list of values, such as {0} = [16, 32], "
                    "or a table with values, powers_of_two or range",
                    parameter.name));
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "parameter '" + parameter.name + "'"));
  const Toml* values = table.optional("values");
  const Toml* powers = table.optional("powers_of_two");
  const Toml* range = table.optional("range");
  const Toml* step = table.optional("step");
  const Toml* preset = table.optional("default");
  if (const Toml* when = table.optional("when")) {
    PURLIN_ASSIGN(parameter.when, to_expression(*when, "when"));
  }
  PURLIN_TRY(table.finish());
  if ((values != nullptr) + (powers != nullptr) + (range != nullptr) != 1)
    return node.complain(fmt::format(
        "parameter '{}' needs exactly one of values, powers_of_two and range", parameter.name));
  if (step != nullptr && range == nullptr) return step->complain("'step' belongs to 'range'");
  if (values != nullptr) PURLIN_TRY(read_values(*values, parameter));
  if (powers != nullptr) PURLIN_TRY(read_powers(*powers, parameter));
  if (range != nullptr) PURLIN_TRY(read_range(*range, step, parameter));
  if (preset == nullptr) return Status::ok();
  PURLIN_ASSIGN(parameter.preset, to_value(*preset));
  const auto& all = parameter.values;
  if (std::find(all.begin(), all.end(), *parameter.preset) == all.end())
    return preset->complain(fmt::format("default {} of '{}' is not one of its values",
                                        to_text(*parameter.preset), parameter.name));
  return Status::ok();
}

}  // namespace purlin
