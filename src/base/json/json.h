// SPDX-License-Identifier: Apache-2.0
// Json: a JSON value, for documents of moderate size (configuration, results, messages).
//
// Objects keep the order their members were added in, so output is stable. Integers are 64-bit and
// kept apart from reals. Parsing is bounded in depth and size and never throws; the error names
// line and column. For gigabyte traces there is profile/import, not this. Thread-safety: a value
// type.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace purlin {

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  // Defined after Member, which they need complete. Implicit conversions are the point of them.
  Json();
  ~Json();
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  Json(std::nullptr_t);          // NOLINT
  Json(bool value);              // NOLINT
  Json(const char* value);       // NOLINT
  Json(std::string_view value);  // NOLINT
  Json(std::string value);       // NOLINT
  Json(double value);            // NOLINT
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Json(T value) : Json(from_int(static_cast<std::int64_t>(value))) {}  // NOLINT

  static Json array(std::initializer_list<Json> items = {});
  static Json object(std::initializer_list<Member> members = {});
  template <class Range>
  static Json array_of(const Range& range) {
    Json result = array();
    for (const auto& item : range) result.push(Json(item));
    return result;
  }

  bool is_null() const { return value_.index() == 0; }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Lenient reads: the value, or the fallback when it is of another type.
  bool as_bool(bool fallback = false) const;
  std::int64_t as_int(std::int64_t fallback = 0) const;
  double as_double(double fallback = 0) const;  // integers convert
  const std::string& as_string() const;         // "" when not a string
  const Array& items() const;                   // empty when not an array
  const Object& members() const;                // empty when not an object

  // A member of an object: nullptr where absent, or where this is not an object.
  const Json* find(std::string_view key) const;
  // The same, a null value where absent: document["environment"]["gpu"].as_string().
  const Json& operator[](std::string_view key) const;

  // Strict reads for documents from outside; the error names the key.
  Result<std::string> string_at(std::string_view key) const;
  Result<std::int64_t> int_at(std::string_view key) const;
  Result<double> double_at(std::string_view key) const;

  Json& set(std::string_view key, Json value);  // adds or replaces; makes a null an object
  Json& push(Json value);                       // makes a null an array
  std::size_t size() const;                     // items or members

  // indent < 0: on one line. Non-finite reals become null.
  std::string dump(int indent = -1) const;

  struct Limits {
    std::size_t max_bytes = std::size_t{256} << 20;
    int max_depth = 200;
  };
  static Result<Json> parse(std::string_view text, const Limits& limits);
  static Result<Json> parse(std::string_view text) { return parse(text, Limits{}); }

  bool operator==(const Json& other) const;

 private:
  static Json from_int(std::int64_t value);
  void write(std::string& out, int indent, int level) const;
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string key;
  Json value;
  bool operator==(const Member& other) const { return key == other.key && value == other.value; }
};

inline Json::Json() = default;
inline Json::~Json() = default;
inline Json::Json(const Json& other) = default;
inline Json::Json(Json&& other) noexcept = default;
inline Json& Json::operator=(const Json& other) = default;
inline Json& Json::operator=(Json&& other) noexcept = default;
inline Json::Json(std::nullptr_t) {}
inline Json::Json(bool value) : value_(value) {}
inline Json::Json(const char* value) : value_(std::string(value)) {}
inline Json::Json(std::string_view value) : value_(std::string(value)) {}
inline Json::Json(std::string value) : value_(std::move(value)) {}
inline Json::Json(double value) : value_(value) {}
inline Json Json::from_int(std::int64_t value) {
  Json json;
  json.value_ = value;
  return json;
}

// Quotes and escapes a string as a JSON string literal, replacing what is not UTF-8.
std::string json_quote(std::string_view text);

}  // namespace purlin
