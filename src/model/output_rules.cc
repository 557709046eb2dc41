// SPDX-License-Identifier: Apache-2.0
#include "model/output_rules.h"

#include "base/text.h"
#include "base/time.h"

namespace purlin {

double ns_per(std::string_view unit) { return ns_per_unit(unit).value_or(0); }

std::string_view to_text(OutputFormat format) {
  switch (format) {
    case OutputFormat::kGoogleBenchmark:
      return "google-benchmark";
    case OutputFormat::kNvbench:
      return "nvbench";
    case OutputFormat::kHyperfine:
      return "hyperfine";
    case OutputFormat::kCsv:
      return "csv";
    case OutputFormat::kRegex:
      return "regex";
  }
  return "";
}

Result<OutputFormat> parse_output_format(std::string_view text) {
  for (const OutputFormat format :
       {OutputFormat::kGoogleBenchmark, OutputFormat::kNvbench, OutputFormat::kHyperfine,
        OutputFormat::kCsv, OutputFormat::kRegex})
    if (to_text(format) == text) return format;
  return error(Code::kInvalid,
               "'{}' is no format of times; known are google-benchmark, nvbench, hyperfine, csv "
               "and regex",
               text);
}

namespace {

// `remedy` says how to write a key that is missing.
Result<std::string> needed(TomlTable& table, std::string_view key, std::string_view remedy) {
  Result<std::string> found = table.string(key);
  if (found.is_ok() || table.node().find(key) != nullptr) return found;
  return error(Code::kInvalid, "{}; {}", found.status().message(), remedy);
}

}  // namespace

Result<OutputRules> read_output_rules(TomlTable& table) {
  OutputRules rules;
  PURLIN_ASSIGN(
      const std::string format,
      needed(table, "format",
             "how times are printed: google-benchmark, nvbench, hyperfine, csv or regex"));
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
    PURLIN_ASSIGN(
        rules.pattern,
        needed(table, "pattern", R"(it finds a time in a line, such as 'time: ([\d.]+) us')"));
  }
  if (rules.format == OutputFormat::kCsv || rules.format == OutputFormat::kRegex) {
    PURLIN_ASSIGN(rules.unit, table.string_or("unit", rules.unit));
    if (ns_per(rules.unit) == 0)
      return table.node().find("unit")->complain(
          fmt::format("'unit' must be \"ns\", \"us\", \"ms\" or \"s\", not '{}'", rules.unit));
  }
  return rules;
}

}  // namespace purlin
