// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/command_suite.h"

#include "measure/output/benchmark_output.h"

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxWords = 1000;

// A single string is one word, a command without arguments: only a shell could split it.
Result<std::vector<std::string>> parse_argv(TomlTable& table) {
  PURLIN_ASSIGN(std::vector<std::string> argv, table.strings_or_empty("run"));
  if (argv.empty() || argv.front().empty())
    return table.node().complain(
        "a command needs 'run', the list of its words: run = [\"./bench\", \"--json\"]");
  if (argv.size() > kMaxWords)
    return table.node().find("run")->complain("'run' has more than 1000 words");
  return argv;
}

Result<double> seconds(TomlTable& table, std::string_view key, double fallback) {
  PURLIN_ASSIGN(const double value, table.number_or(key, fallback));
  if (value >= 0 && value <= 86400) return value;
  return table.node().find(key)->complain(
      fmt::format("'{}' must lie between 0 and 86400 seconds, not {}", key, value));
}

}  // namespace

Status parse_environment(const Toml* node, std::map<std::string, std::string>* environment) {
  if (node == nullptr) return Status::ok();
  if (node->table() == nullptr)
    return node->complain("'environment' must be a table: {NAME = \"value\"}");
  for (const auto& [name, value] : *node->table()) {
    if (value.string() == nullptr) return value.complain("values of 'environment' must be strings");
    if (name.empty() || name.find('=') != std::string::npos)
      return value.complain(fmt::format("'{}' cannot name an environment variable", name));
    (*environment)[name] = *value.string();
  }
  return Status::ok();
}

Result<CommandSpec> parse_command(const Toml& node, const Thresholds& defaults) {
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[[commands]]"));
  CommandSpec command;
  command.where = node.where();
  PURLIN_ASSIGN(command.name, table.string_or("name", ""));
  PURLIN_ASSIGN(command.argv, parse_argv(table));
  PURLIN_ASSIGN(command.directory, table.string_or("directory", ""));
  PURLIN_TRY(parse_environment(table.optional("environment"), &command.environment));
  PURLIN_ASSIGN(command.rules, read_output_rules(table));
  if (const Status readable = measure::check_output_rules(command.rules); !readable.is_ok())
    return table.node().find("pattern")->complain(readable.message());
  PURLIN_ASSIGN(command.timeout_s, seconds(table, "timeout_s", command.timeout_s));
  if (command.timeout_s == 0)
    return table.node().find("timeout_s")->complain("'timeout_s' must be above 0");
  PURLIN_ASSIGN(command.expected_s, seconds(table, "expected_s", 0));
  PURLIN_ASSIGN(command.tags, table.strings_or_empty("tags"));
  PURLIN_ASSIGN(command.thresholds, parse_thresholds(table.optional("thresholds"), defaults));
  PURLIN_TRY(table.finish());
  return command;
}

}  // namespace purlin::guard
