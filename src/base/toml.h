// SPDX-License-Identifier: Apache-2.0
// Toml: a parsed TOML document in which every value knows its line and column, so that any later
// complaint about it can say where it stands. TomlTable reads one table and reports what it was not
// asked for. Thread-safety: Toml is a value type; a TomlTable belongs to one thread.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace purlin {

struct Toml {
  using Table = std::vector<std::pair<std::string, Toml>>;  // in the document's order
  std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<Toml>, Table>
      value;
  std::string file;
  int line = 0;
  int column = 0;

  Toml();
  ~Toml();
  Toml(const Toml&);
  Toml& operator=(const Toml&);
  Toml(Toml&&) noexcept;
  Toml& operator=(Toml&&) noexcept;

  static Result<Toml> parse(std::string_view text, std::string_view file_name);
  static Result<Toml> load(const std::string& path);

  // The value where it is of that type, else nullptr.
  const bool* boolean() const;
  const std::int64_t* integer() const;
  const double* real() const;
  const std::string* string() const;
  const std::vector<Toml>* array() const;
  const Table* table() const;
  const Toml* find(std::string_view key) const;  // nullptr where absent or not a table

  std::string_view type_name() const;
  std::string where() const;  // "gemm.toml:12:7"
  // kInvalid with "file:line:column: text".
  Status complain(std::string_view text) const;
};

// Typed reads of one table. Each read marks its key as known; finish() fails on the first key that
// was not read, with the nearest known key as a suggestion.
class TomlTable {
 public:
  // `what` names the table in messages: "[launch]".
  static Result<TomlTable> of(const Toml& node, std::string_view what);

  const Toml* optional(std::string_view key);
  Result<const Toml*> required(std::string_view key);
  Result<std::string> string(std::string_view key);
  Result<std::string> string_or(std::string_view key, std::string fallback);
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback);
  Result<double> number_or(std::string_view key, double fallback);
  Result<bool> boolean_or(std::string_view key, bool fallback);
  // A list of strings; one bare string counts as a list of one, an integer as its decimal text.
  Result<std::vector<std::string>> strings_or_empty(std::string_view key);
  Status finish() const;
  const Toml& node() const { return *node_; }

 private:
  TomlTable(const Toml& node, std::string_view what) : node_(&node), what_(what) {}
  const Toml* node_;
  std::string what_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace purlin
