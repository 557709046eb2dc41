// SPDX-License-Identifier: Apache-2.0
#include "model/expression/value.h"

#include "base/json/json_view.h"
#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace purlin {
namespace {

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto [end, code] = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end);
  // 2.0 and 2 are different values, so they must have different texts.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// A value as the command line spells it.
Value value_from_text(std::string_view text) {
  if (const auto integer = parse_int(text)) return *integer;
  // parse_double also takes "inf" and "nan", which here are more likely to be words.
  const bool numeric = text.find_first_of("0123456789") != std::string_view::npos;
  if (const auto real = parse_double(text); numeric && real) return *real;
  if (text == "True" || text == "true") return true;
  if (text == "False" || text == "false") return false;
  return std::string(text);
}

// Calls `add(name, value)` for each "name=value" of a comma-separated list.
template <class Add>
Status each_assignment(std::string_view text, Add add) {
  if (trim(text).empty()) return Status::ok();
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      return error(Code::kInvalid, "'{}' is not NAME=VALUE; write a list such as A=1,B=2",
                   trim(part));
    const std::string_view name = trim(std::string_view(part).substr(0, equals));
    if (name.empty()) return error(Code::kInvalid, "'{}' has no name before '='", trim(part));
    PURLIN_TRY(add(name, trim(std::string_view(part).substr(equals + 1))));
  }
  return Status::ok();
}

template <class Item>
auto* find_item(std::vector<Item>& items, std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(),
                                  [&](const Item& item) { return item.first == name; });
  return found == items.end() ? nullptr : &found->second;
}

std::string beginning_of(const Json& json) { return json.dump().substr(0, 40); }
std::string beginning_of(const JsonView& json) { return std::string(json.text().substr(0, 40)); }

// Of a Json or a JsonView.
template <class J>
Result<Value> value_from(const J& json) {
  if (json.is_int()) return Value(json.as_int());
  if (json.is_number()) return Value(json.as_double());
  if (json.is_bool()) return Value(json.as_bool());
  if (json.is_string()) return Value(std::string(json.as_string()));
  return error(Code::kInvalid, "a value must be a number, a boolean or a text, not {}",
               beginning_of(json));
}

template <class J>
Result<Config> config_from(const J& json) {
  if (!json.is_object()) return error(Code::kInvalid, "a config must be an object");
  Config config;
  for (const auto& member : json.members()) {
    Result<Value> value = value_from(member.value);
    if (!value.is_ok()) return value.status().with_context(member.key);
    config.set(member.key, std::move(value).value());
  }
  return config;
}

template <class J>
Result<ProblemShape> shape_from(const J& json) {
  if (!json.is_object()) return error(Code::kInvalid, "a problem shape must be an object");
  ProblemShape shape;
  for (const auto& member : json.members()) {
    if (!member.value.is_int() || member.value.as_int() < 1)
      return error(Code::kInvalid, "extent of '{}' must be a positive integer, not {}", member.key,
                   beginning_of(member.value));
    shape.set(member.key, member.value.as_int());
  }
  return shape;
}

}  // namespace

std::string to_text(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "True" : "False";
  return std::get<std::string>(value);
}

Json to_json(const Value& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Result<Value> value_from_json(const Json& json) { return value_from(json); }

Result<double> to_double(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? 1.0 : 0.0;
  return error(Code::kInvalid, "'{}' is a text, not a number", std::get<std::string>(value));
}

bool truthy(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return !text->empty();
  return to_double(value).value_or(0) != 0;
}

void Config::set(std::string_view name, Value value) {
  if (Value* held = find_item(items_, name)) {
    *held = std::move(value);
  } else {
    items_.emplace_back(name, std::move(value));
  }
}

const Value* Config::find(std::string_view name) const {
  return find_item(const_cast<Config*>(this)->items_, name);
}

std::string Config::text() const {
  std::string out;
  for (const auto& [name, value] : items_) {
    if (!out.empty()) out += ' ';
    out += name + "=" + to_text(value);
  }
  return out;
}

Json to_json(const Config& config) {
  Json out = Json::object();
  for (const auto& [name, value] : config.items()) out.set(name, to_json(value));
  return out;
}

Result<Config> config_from_json(const Json& json) { return config_from(json); }
Result<Config> config_from_json(const JsonView& json) { return config_from(json); }

Result<Config> parse_config(std::string_view text) {
  Config config;
  PURLIN_TRY(each_assignment(text, [&](std::string_view name, std::string_view value) -> Status {
    if (config.find(name) != nullptr) return error(Code::kInvalid, "'{}' is given twice", name);
    config.set(name, value_from_text(value));
    return Status::ok();
  }));
  return config;
}

void ProblemShape::set(std::string_view name, std::int64_t extent) {
  if (std::int64_t* held = find_item(items_, name)) {
    *held = extent;
  } else {
    items_.emplace_back(name, extent);
  }
}

const std::int64_t* ProblemShape::find(std::string_view name) const {
  return find_item(const_cast<ProblemShape*>(this)->items_, name);
}

std::string ProblemShape::text() const {
  std::string out;
  for (const auto& [name, extent] : items_) {
    if (!out.empty()) out += ',';
    out += name + "=" + std::to_string(extent);
  }
  return out;
}

Json to_json(const ProblemShape& shape) {
  Json out = Json::object();
  for (const auto& [name, extent] : shape.items()) out.set(name, extent);
  return out;
}

Result<ProblemShape> shape_from_json(const Json& json) { return shape_from(json); }
Result<ProblemShape> shape_from_json(const JsonView& json) { return shape_from(json); }

Result<ProblemShape> parse_shape(std::string_view text) {
  ProblemShape shape;
  PURLIN_TRY(each_assignment(text, [&](std::string_view name, std::string_view value) -> Status {
    const auto extent = parse_int(value);
    if (!extent || *extent < 1)
      return error(Code::kInvalid, "extent of '{}' must be a positive integer, not '{}'", name,
                   value);
    if (shape.find(name) != nullptr) return error(Code::kInvalid, "'{}' is given twice", name);
    shape.set(name, *extent);
    return Status::ok();
  }));
  return shape;
}

}  // namespace purlin
