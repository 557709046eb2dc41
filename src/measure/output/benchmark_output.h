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
#include "model/output_rules.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::measure {

// Valid times in ns and clocks in MHz: their ratios and products are finite.
inline bool is_time(double ns) { return ns >= 1e-6 && ns <= 1e18; }
inline bool is_clock(double mhz) { return mhz > 0 && mhz <= 1e6; }

struct BenchmarkTimes {
  std::string name;
  std::vector<double> times_ns;
  std::vector<double> clocks_mhz;  // as many, or empty
  std::string failure;             // why the benchmark reported a failure; "" = it did not
  std::string skipped;             // why the benchmark skips itself; "" = it does not
};

// kInvalid: no output can be read by these rules. Said before a command runs.
Status check_output_rules(const OutputRules& rules);

// `folder` holds nvbench's sample files; "" = do not read them.
Result<std::vector<BenchmarkTimes>> parse_benchmark_output(std::string_view text,
                                                           const OutputRules& rules,
                                                           const std::string& folder);

}  // namespace purlin::measure
