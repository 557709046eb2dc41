// SPDX-License-Identifier: Apache-2.0
#include "guard/suite/command_suite.h"

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

Result<OutputRules> parse_rules(TomlTable& table) {
  OutputRules rules;
  PURLIN_ASSIGN(const std::string format, table.string("format"));
  const Result<OutputFormat> known = parse_output_format(format);
  if (!known.is_ok()) return table.node().find("format")->complain(known.status().message());
  rules.format = *known;
  if (rules.format == OutputFormat::kGoogleBenchmark) {
    PURLIN_ASSIGN(rules.time, table.string_or("time", rules.time));
  } else if (rules.format == OutputFormat::kCsv) {
    PURLIN_ASSIGN(rules.name_column, table.string_or("name_column", rules.name_column));
    PURLIN_ASSIGN(rules.time_column, table.string_or("time_column", rules.time_column));
    PURLIN_ASSIGN(rules.clock_column, table.string_or("clock_column", ""));
  } else if (rules.format == OutputFormat::kRegex) {
    PURLIN_ASSIGN(rules.pattern, table.string("pattern"));
  }
  if (rules.format == OutputFormat::kCsv || rules.format == OutputFormat::kRegex) {
    PURLIN_ASSIGN(rules.unit, table.string_or("unit", rules.unit));
    if (ns_per(rules.unit) == 0)
      return table.node().find("unit")->complain(
          fmt::format("'unit' must be \"ns\", \"us\", \"ms\" or \"s\", not '{}'", rules.unit));
  }
  return rules;
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
  PURLIN_ASSIGN(command.rules, parse_rules(table));
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
