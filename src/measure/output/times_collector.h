// SPDX-License-Identifier: Apache-2.0
// TimesCollector: samples by benchmark, in the order in which the names first occur, within limits.
// The readers of JSON formats are here too. Internal to benchmark_output. Thread-safety: one owner.
// Failure: kInvalid with the name of the benchmark.
#pragma once

#include "measure/output/benchmark_output.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace purlin::measure {

constexpr std::size_t kMaxOutputSamples = 10'000'000;  // over all benchmarks of one output

class TimesCollector {
 public:
  Status add(std::string name, double time_ns, double clock_mhz = 0);
  Status fail(std::string name, std::string why);
  Status skip(std::string name, std::string why);
  // For formats in which a name, or a name with its repetition, occurs once: kInvalid where `key`
  // came before. Samples of two benchmarks are never pooled.
  Status once(const std::string& key);
  // kInvalid without times, failures and skipped benchmarks; `expected` is the reason.
  Result<std::vector<BenchmarkTimes>> finish(std::string_view expected);

 private:
  Result<BenchmarkTimes*> find(std::string name);

  std::vector<BenchmarkTimes> all_;
  std::map<std::string, std::size_t> positions_;
  std::set<std::string> seen_;
  std::size_t samples_ = 0;
};

Result<std::vector<BenchmarkTimes>> parse_google_benchmark(std::string_view text,
                                                           const OutputRules& rules);
Result<std::vector<BenchmarkTimes>> parse_nvbench(std::string_view text, const std::string& folder);
Result<std::vector<BenchmarkTimes>> parse_hyperfine(std::string_view text);

}  // namespace purlin::measure
