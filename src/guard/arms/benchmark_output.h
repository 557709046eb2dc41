// SPDX-License-Identifier: Apache-2.0
// What other people's benchmarks print, as samples: Google Benchmark's JSON, nvbench's JSON (with
// its sample files), hyperfine's JSON, CSV with a column of times, and lines that a regular
// expression picks times from.
//
// Foreign input: sizes, depths and counts are bounded; nothing is trusted. Pure functions but for
// nvbench's sample files. Failure: kInvalid naming the place and what was expected there;
// docs/formats/suite.md has one example of each format.
#pragma once

#include "base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::guard {

enum class OutputFormat { kGoogleBenchmark, kNvbench, kHyperfine, kCsv, kRegex };
std::string_view to_text(OutputFormat format);  // "google-benchmark", "nvbench", …
Result<OutputFormat> parse_output_format(std::string_view text);

struct OutputRules {
  OutputFormat format = OutputFormat::kGoogleBenchmark;
  // Google Benchmark: "real_time" (also what manual times and UseManualTime end up in), "cpu_time".
  std::string time = "real_time";
  // CSV: names of columns. The unit of times is told by the column's name, "time_us", else `unit`.
  std::string name_column = "name", time_column = "time_ns", clock_column;
  // Regex, ECMAScript without back-references, tried on the first 4,096 bytes of each line. One
  // group: the time. Two: name, time. Three: name, time, unit.
  std::string pattern;
  std::string unit = "ns";  // where the output does not say: "ns", "us", "ms", "s"
};

struct BenchmarkTimes {
  std::string name;
  std::vector<double> times_ns;
  std::vector<double> clocks_mhz;  // as many, or empty
  std::string failure;             // the benchmark said that it failed or was skipped, and why
};

// `folder` is where nvbench's sample files are looked for; "" = they are not.
Result<std::vector<BenchmarkTimes>> parse_benchmark_output(std::string_view text,
                                                           const OutputRules& rules,
                                                           const std::string& folder);

// ns per unit of "ns", "us", "ms", "s" (and "µs", "usec", "msec", "sec"); 0 = unknown.
double ns_per(std::string_view unit);

}  // namespace purlin::guard
