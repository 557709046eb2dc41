// SPDX-License-Identifier: Apache-2.0
// Samples from the output of other benchmark programs: Google Benchmark's JSON, nvbench's JSON with
// its sample files, hyperfine's JSON, CSV with a column of times, and lines with times that a
// regular expression matches.
//
// This is foreign input: sizes, depths and counts are bounded. Pure functions, except for nvbench's
// sample files. Failure: kInvalid with the place and the expected content. docs/formats/suite.md
// has one example of each format.
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
  // Google Benchmark: "real_time" (also holds manual times) or "cpu_time".
  std::string time = "real_time";
  // CSV: names of columns. A suffix of the column, as in "time_us", gives the unit; else `unit`.
  std::string name_column = "name", time_column = "time_ns", clock_column;
  // Regex (base/regex.h), tried on the first 4,096 bytes of each line. One group: the time. Two:
  // name, time. Three: name, time, unit.
  std::string pattern;
  std::string unit = "ns";  // for outputs without a unit: "ns", "us", "ms", "s"
};

struct BenchmarkTimes {
  std::string name;
  std::vector<double> times_ns;
  std::vector<double> clocks_mhz;  // as many, or empty
  std::string failure;             // why the benchmark reported a failure; "" = it did not
  std::string skipped;             // why the benchmark skips itself; "" = it does not
};

// `folder` holds nvbench's sample files; "" = do not read them.
Result<std::vector<BenchmarkTimes>> parse_benchmark_output(std::string_view text,
                                                           const OutputRules& rules,
                                                           const std::string& folder);

// ns per unit of "ns", "us", "ms", "s" (and "µs", "usec", "msec", "sec"); 0 = unknown.
double ns_per(std::string_view unit);

}  // namespace purlin::guard
