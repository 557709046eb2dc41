// SPDX-License-Identifier: Apache-2.0
#include "base/toml.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>

// toml++ asserts that a key begins well before it checks it ("[^[x]]"), and in release builds turns
// the assertion into a promise to the compiler. Without either, its check reports the mistake.
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>

namespace purlin {
namespace {

Toml convert(const toml::node& node, const std::string& file) {
  Toml out;
  out.file = file;
  out.line = static_cast<int>(node.source().begin.line);
  out.column = static_cast<int>(node.source().begin.column);
  if (const auto* table = node.as_table()) {
    std::vector<std::pair<toml::source_position, std::pair<std::string, Toml>>> members;
    for (const auto& [key, value] : *table)
      members.push_back({key.source().begin, {std::string(key.str()), convert(value, file)}});
    // toml++ sorts by name; the document's own order is the one a person chose.
    std::stable_sort(members.begin(), members.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Toml::Table result;
    for (auto& member : members) result.push_back(std::move(member.second));
    out.value = std::move(result);
  } else if (const auto* array = node.as_array()) {
    std::vector<Toml> items;
    for (const auto& item : *array) items.push_back(convert(item, file));
    out.value = std::move(items);
  } else if (const auto* text = node.as_string()) {
    out.value = std::string(text->get());
  } else if (const auto* integer = node.as_integer()) {
    out.value = std::int64_t{integer->get()};
  } else if (const auto* real = node.as_floating_point()) {
    out.value = double{real->get()};
  } else if (const auto* boolean = node.as_boolean()) {
    out.value = bool{boolean->get()};
  }
  return out;
}

// Refuses characters beyond ASCII outside of strings and comments. TOML does not allow them there,
// and toml++ 3.3 has undefined behaviour for most of them before it comes to say so.
Status check_bare_text(std::string_view text, std::string_view file) {
  int line = 1;
  std::size_t line_start = 0;
  char quote = 0;  // of the string we are in, '#' in a comment, 0 outside
  bool multi_line = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool triple = at + 2 < text.size() && text[at + 1] == c && text[at + 2] == c;
    if (c == '\n') {
      ++line;
      line_start = at + 1;
      if (!multi_line) quote = 0;
    } else if (quote == 0) {
      if (static_cast<unsigned char>(c) >= 0x80)
        return error(Code::kInvalid,
                     "{}:{}:{}: a character beyond ASCII outside of a string; put it in quotes",
                     file, line, at - line_start + 1);
      if (c == '#' || c == '"' || c == '\'') {
        quote = c;
        multi_line = c != '#' && triple;
        if (multi_line) at += 2;
      }
    } else if (quote == '"' && c == '\\' && at + 1 < text.size() && text[at + 1] != '\n') {
      ++at;
    } else if (c == quote && quote != '#' && (!multi_line || triple)) {
      if (multi_line) at += 2;
      // Up to two more quotes before the closing three belong to the string.
      while (multi_line && at + 1 < text.size() && text[at + 1] == quote) ++at;
      quote = 0;
      multi_line = false;
    }
  }
  return Status::ok();
}

}  // namespace

Result<Toml> Toml::parse(std::string_view text, std::string_view file_name) {
  if (starts_with(text, "\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte-order mark
  PURLIN_TRY(check_bare_text(text, file_name));
  toml::parse_result parsed = toml::parse(text, std::string(file_name));
  if (!parsed) {
    const auto& problem = parsed.error();
    return error(Code::kInvalid, "{}:{}:{}: {}", file_name, problem.source().begin.line,
                 problem.source().begin.column, problem.description());
  }
  return convert(parsed.table(), std::string(file_name));
}

Result<Toml> Toml::load(const std::string& path) {
  PURLIN_ASSIGN(const std::string text, read_file(path, std::size_t{16} << 20));
  return parse(text, path);
}

// Out of line because the variant holds Toml itself: not every compiler can lay it out earlier.
Toml::Toml() = default;
Toml::~Toml() = default;
Toml::Toml(const Toml&) = default;
Toml& Toml::operator=(const Toml&) = default;
Toml::Toml(Toml&&) noexcept = default;
Toml& Toml::operator=(Toml&&) noexcept = default;

const bool* Toml::boolean() const { return std::get_if<bool>(&value); }
const std::int64_t* Toml::integer() const { return std::get_if<std::int64_t>(&value); }
const double* Toml::real() const { return std::get_if<double>(&value); }
const std::string* Toml::string() const { return std::get_if<std::string>(&value); }
const std::vector<Toml>* Toml::array() const { return std::get_if<std::vector<Toml>>(&value); }
const Toml::Table* Toml::table() const { return std::get_if<Table>(&value); }

const Toml* Toml::find(std::string_view key) const {
  const Table* members = table();
  if (members == nullptr) return nullptr;
  for (const auto& [name, member] : *members)
    if (name == key) return &member;
  return nullptr;
}

std::string_view Toml::type_name() const {
  constexpr std::string_view kNames[] = {"a date",   "a boolean", "an integer", "a number",
                                         "a string", "an array",  "a table"};
  return kNames[value.index()];
}

std::string Toml::where() const { return fmt::format("{}:{}:{}", file, line, column); }

Status Toml::complain(std::string_view text) const {
  return error(Code::kInvalid, "{}: {}", where(), text);
}

Result<TomlTable> TomlTable::of(const Toml& node, std::string_view what) {
  if (node.table() == nullptr)
    return node.complain(fmt::format("{} must be a table, not {}", what, node.type_name()));
  return TomlTable(node, what);
}

const Toml* TomlTable::optional(std::string_view key) {
  known_.emplace(key);
  return node_->find(key);
}

Result<const Toml*> TomlTable::required(std::string_view key) {
  const Toml* found = optional(key);
  if (found != nullptr) return found;
  std::vector<std::string> names;
  for (const auto& [name, value] : *node_->table())
    if (known_.find(name) == known_.end()) names.push_back(name);
  const std::string near = nearest(key, names);
  return node_->complain(
      fmt::format("{} needs '{}'{}", what_, key,
                  near.empty() ? "" : fmt::format("; is '{}' meant to be it?", near)));
}

Result<std::string> TomlTable::string(std::string_view key) {
  PURLIN_ASSIGN(const Toml* found, required(key));
  if (found->string() == nullptr)
    return found->complain(fmt::format("'{}' must be a string, not {}", key, found->type_name()));
  return *found->string();
}

Result<std::string> TomlTable::string_or(std::string_view key, std::string fallback) {
  if (optional(key) == nullptr) return fallback;
  return string(key);
}

Result<std::int64_t> TomlTable::integer_or(std::string_view key, std::int64_t fallback) {
  const Toml* found = optional(key);
  if (found == nullptr) return fallback;
  if (found->integer() == nullptr)
    return found->complain(fmt::format("'{}' must be an integer, not {}", key, found->type_name()));
  return *found->integer();
}

Result<double> TomlTable::number_or(std::string_view key, double fallback) {
  const Toml* found = optional(key);
  if (found == nullptr) return fallback;
  if (found->integer() != nullptr) return static_cast<double>(*found->integer());
  if (found->real() == nullptr)
    return found->complain(fmt::format("'{}' must be a number, not {}", key, found->type_name()));
  return *found->real();
}

Result<bool> TomlTable::boolean_or(std::string_view key, bool fallback) {
  const Toml* found = optional(key);
  if (found == nullptr) return fallback;
  if (found->boolean() == nullptr)
    return found->complain(
        fmt::format("'{}' must be true or false, not {}", key, found->type_name()));
  return *found->boolean();
}

Result<std::vector<std::string>> TomlTable::strings_or_empty(std::string_view key) {
  std::vector<std::string> out;
  const Toml* found = optional(key);
  if (found == nullptr) return out;
  auto add = [&](const Toml& item) -> Status {
    if (item.string() != nullptr) {
      out.push_back(*item.string());
    } else if (item.integer() != nullptr) {
      out.push_back(std::to_string(*item.integer()));
    } else {
      return item.complain(fmt::format("'{}' must hold strings, not {}", key, item.type_name()));
    }
    return Status::ok();
  };
  if (found->array() == nullptr) {
    PURLIN_TRY(add(*found));
    return out;
  }
  for (const Toml& item : *found->array()) PURLIN_TRY(add(item));
  return out;
}

Status TomlTable::finish() const {
  for (const auto& [key, value] : *node_->table()) {
    if (known_.find(key) != known_.end()) continue;
    const std::vector<std::string> names(known_.begin(), known_.end());
    const std::string near = nearest(key, names);
    return value.complain(
        fmt::format("{} has no key '{}'{}", what_, key,
                    near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
  return Status::ok();
}

}  // namespace purlin
