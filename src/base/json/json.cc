// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include "base/utf8.h"

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>

namespace purlin {
namespace {

const Json kNull;
const std::string kEmptyString;
const Json::Array kEmptyArray;
const Json::Object kEmptyObject;

// Builds a Json from the events of nlohmann's parser, which checks the grammar and UTF-8.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(int max_depth) : max_depth_(max_depth) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX))
      return add(Json(static_cast<double>(value)));
    return add(Json(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Json(value)); }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& problem) override {
    position_ = position;
    message_ = problem.what();
    // nlohmann's text begins with "[json.exception.parse_error.101] parse error at …: ".
    if (auto colon = message_.find(": "); colon != std::string::npos) message_.erase(0, colon + 2);
    return false;
  }

  Json result;
  std::size_t position_ = 0;
  std::string message_;

 private:
  bool add(Json value) {
    if (stack_.empty()) {
      result = std::move(value);
    } else if (stack_.back().is_array()) {
      stack_.back().push(std::move(value));
    } else {
      // A repeated key keeps its last value, as most readers do; appending keeps this linear.
      object_members().push_back({std::move(keys_.back()), std::move(value)});
    }
    return true;
  }
  Json::Object& object_members() { return const_cast<Json::Object&>(stack_.back().members()); }
  bool open(Json value) {
    if (static_cast<int>(stack_.size()) >= max_depth_) {
      message_ = fmt::format("nested deeper than {} levels", max_depth_);
      return false;
    }
    stack_.push_back(std::move(value));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Json value = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    return add(std::move(value));
  }

  int max_depth_;
  std::vector<Json> stack_;
  std::vector<std::string> keys_;
};

void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[32];
  auto [end, code] = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  out += text;
  // Keep reals recognisable as such, so that a document reads back with the same types.
  if (text.find_first_of(".en") == std::string_view::npos) out += ".0";
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i++];
    } else if (c < 0x20) {
      switch (c) {
        case '\n':
          out += "\\n";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\r':
          out += "\\r";
          break;
        default:
          out += fmt::format("\\u{:04x}", c);
      }
      ++i;
    } else if (const Utf8 next = first_utf8(text.substr(i)); next.valid) {
      out.append(text.substr(i, next.bytes));
      i += next.bytes;
    } else {
      out += "\xEF\xBF\xBD";  // U+FFFD, the replacement character
      ++i;
    }
  }
  out += '"';
  return out;
}

Json Json::array(std::initializer_list<Json> items) {
  Json result;
  result.value_ = Array(items);
  return result;
}

Json Json::object(std::initializer_list<Member> members) {
  Json result;
  result.value_ = Object(members);
  return result;
}

bool Json::as_bool(bool fallback) const {
  const bool* value = std::get_if<bool>(&value_);
  return value ? *value : fallback;
}

std::int64_t Json::as_int(std::int64_t fallback) const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  const double* real = std::get_if<double>(&value_);
  // 2^63 is exact as a double; anything in between converts without overflow.
  if (real && *real >= -9223372036854775808.0 && *real < 9223372036854775808.0 &&
      *real == std::floor(*real))
    return static_cast<std::int64_t>(*real);
  return fallback;
}

double Json::as_double(double fallback) const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  const double* value = std::get_if<double>(&value_);
  return value ? *value : fallback;
}

const std::string& Json::as_string() const {
  const auto* value = std::get_if<std::string>(&value_);
  return value ? *value : kEmptyString;
}

const Json::Array& Json::items() const {
  const auto* value = std::get_if<Array>(&value_);
  return value ? *value : kEmptyArray;
}

const Json::Object& Json::members() const {
  const auto* value = std::get_if<Object>(&value_);
  return value ? *value : kEmptyObject;
}

const Json* Json::find(std::string_view key) const {
  const Object& all = members();
  for (auto it = all.rbegin(); it != all.rend(); ++it)
    if (it->key == key) return &it->value;
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  const Json* value = find(key);
  return value ? *value : kNull;
}

Result<std::string> Json::string_at(std::string_view key) const {
  const Json& value = (*this)[key];
  if (!value.is_string()) return error(Code::kInvalid, "'{}' must be a string", key);
  return value.as_string();
}

Result<std::int64_t> Json::int_at(std::string_view key) const {
  const Json& value = (*this)[key];
  if (!value.is_int()) return error(Code::kInvalid, "'{}' must be an integer", key);
  return value.as_int();
}

Result<double> Json::double_at(std::string_view key) const {
  const Json& value = (*this)[key];
  if (!value.is_number()) return error(Code::kInvalid, "'{}' must be a number", key);
  return value.as_double();
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object();
  auto& all = std::get<Object>(value_);
  // From the end, as find() does: of a repeated key the last one counts.
  for (auto member = all.rbegin(); member != all.rend(); ++member) {
    if (member->key == key) {
      member->value = std::move(value);
      return *this;
    }
  }
  all.push_back({std::string(key), std::move(value)});
  return *this;
}

Json& Json::push(Json value) {
  if (is_null()) value_ = Array();
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

std::size_t Json::size() const { return is_array() ? items().size() : members().size(); }

void Json::write(std::string& out, int indent, int level) const {
  auto newline = [&](int depth) {
    if (indent < 0) return;
    out += '\n';
    out.append(static_cast<std::size_t>(indent * depth), ' ');
  };
  if (is_null()) {
    out += "null";
  } else if (is_bool()) {
    out += as_bool() ? "true" : "false";
  } else if (is_int()) {
    out += std::to_string(as_int());
  } else if (is_number()) {
    append_double(out, as_double());
  } else if (is_string()) {
    out += json_quote(as_string());
  } else if (is_array()) {
    // Arrays of scalars stay on one line with every indent: samples are many.
    bool flat = true;
    for (const Json& item : items()) flat = flat && !item.is_array() && !item.is_object();
    out += '[';
    bool first = true;
    for (const Json& item : items()) {
      if (!first) out += flat && indent >= 0 ? ", " : ",";
      first = false;
      if (!flat) newline(level + 1);
      item.write(out, indent, level + 1);
    }
    if (!flat) newline(level);
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const Member& member : members()) {
      if (!first) out += ',';
      first = false;
      newline(level + 1);
      out += json_quote(member.key);
      out += indent >= 0 ? ": " : ":";
      member.value.write(out, indent, level + 1);
    }
    if (!members().empty()) newline(level);
    out += '}';
  }
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

Result<Json> Json::parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.max_bytes)
    return error(Code::kInvalid, "JSON of {} bytes is over the limit of {}", text.size(),
                 limits.max_bytes);
  Builder builder(limits.max_depth);
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &builder))
    return std::move(builder.result);
  const std::string_view before = text.substr(0, std::min(builder.position_, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const auto column =
      before.size() - (before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1);
  if (builder.position_ == 0) return error(Code::kInvalid, "malformed JSON: {}", builder.message_);
  return error(Code::kInvalid, "malformed JSON at line {}, column {}: {}", line, column,
               builder.message_);
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

}  // namespace purlin
