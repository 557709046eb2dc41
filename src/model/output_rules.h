// SPDX-License-Identifier: Apache-2.0
// OutputRules: how to read times from the output of a benchmark program. Commands of a guard suite
// and commands as kernels (spec/command.h) have them.
//
// Value types; the reader is measure/output/benchmark_output.h. docs/formats/suite.md describes the
// formats. Pure functions. Failure: kInvalid with file:line:column.
#pragma once

#include "base/status.h"
#include "base/toml.h"

#include <string>
#include <string_view>

namespace purlin {

enum class OutputFormat { kGoogleBenchmark, kNvbench, kHyperfine, kCsv, kRegex };
std::string_view to_text(OutputFormat format);  // "google-benchmark", "nvbench", …
Result<OutputFormat> parse_output_format(std::string_view text);

struct OutputRules {
  OutputFormat format = OutputFormat::kGoogleBenchmark;
  // Google Benchmark: "real_time" (also holds manual times) or "cpu_time".
  std::string time = "real_time";
  // CSV: names of columns. A suffix of the column, as in "time_us", gives the unit; else `unit`.
  std::string name_column = "name", time_column = "time_ns", clock_column;
  // Regex (base/regex.h), tried on the first 4,096 bytes of each line. One group: the time. Two:
  // name, time. Three: name, time, unit.
  std::string pattern;
  std::string unit = "ns";  // for outputs without a unit: "ns", "us", "ms", "s"
};

// The keys format, time, name_column, time_column, clock_column, pattern and unit of a table.
Result<OutputRules> read_output_rules(TomlTable& table);

// ns per unit of "ns", "us", "ms", "s" (and "µs", "usec", "msec", "sec"); 0 = unknown.
double ns_per(std::string_view unit);

}  // namespace purlin
