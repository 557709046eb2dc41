// SPDX-License-Identifier: Apache-2.0
// Value: what a tuning parameter or an expression yields. Config: one assignment of the parameters.
#pragma once

#include "base/json/json.h"
#include "base/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace purlin {

class JsonView;

using Value = std::variant<std::int64_t, double, bool, std::string>;

std::string to_text(const Value& value);  // 16, 0.5, True/False, plain text
Json to_json(const Value& value);
Result<Value> value_from_json(const Json& json);
// A number's value; booleans are 0 and 1. kInvalid for text.
Result<double> to_double(const Value& value);
bool truthy(const Value& value);  // as Python has it: 0, 0.0, False and "" are false

// Parameter -> value, in the spec's order.
class Config {
 public:
  void set(std::string_view name, Value value);
  const Value* find(std::string_view name) const;
  const std::vector<std::pair<std::string, Value>>& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  std::string text() const;  // "BM=64 BN=32 UNROLL=True"; canonical: equal configs have equal text
  bool operator==(const Config& other) const { return items_ == other.items_; }

 private:
  std::vector<std::pair<std::string, Value>> items_;
};

Json to_json(const Config& config);
Result<Config> config_from_json(const Json& json);
Result<Config> config_from_json(const JsonView& json);
// "BM=64,BN=32": integers, reals, True/False, else text.
Result<Config> parse_config(std::string_view text);

// Problem shape: dimension -> extent, in the spec's order.
class ProblemShape {
 public:
  void set(std::string_view name, std::int64_t extent);
  const std::int64_t* find(std::string_view name) const;
  const std::vector<std::pair<std::string, std::int64_t>>& items() const { return items_; }
  bool empty() const { return items_.empty(); }
  std::string text() const;  // "M=4096,N=4096,K=4096"
  bool operator==(const ProblemShape& other) const { return items_ == other.items_; }

 private:
  std::vector<std::pair<std::string, std::int64_t>> items_;
};

Json to_json(const ProblemShape& shape);
Result<ProblemShape> shape_from_json(const Json& json);
Result<ProblemShape> shape_from_json(const JsonView& json);
// "M=4096,N=4096". Extents are positive; suffixes k, M (1024-based) are not accepted.
Result<ProblemShape> parse_shape(std::string_view text);

}  // namespace purlin
