// SPDX-License-Identifier: Apache-2.0
// What the guard reads from outside: suites, matrices, sample files, baselines, histories, what
// benchmarks print, and its own journals; the first byte chooses. What was read is also used.
#include "guard/arms/pair_journal.h"
#include "guard/gate/samples.h"
#include "guard/history/history.h"
#include "guard/matrix/matrix.h"
#include "guard/suite/baseline.h"
#include "guard/suite/suite.h"
#include "measure/output/benchmark_output.h"
#include "require.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace purlin;

void try_output(std::string_view text, OutputFormat format) {
  OutputRules rules;
  rules.format = format;
  rules.pattern = "^(\\w+) took ([0-9.eE+-]+) ?(ns|us|ms|s)?$";
  rules.clock_column = "sm_clock_mhz";
  const auto read = measure::parse_benchmark_output(text, rules, "/nonexistent");
  if (!read.is_ok()) return;
  require(!read->empty());
  for (const measure::BenchmarkTimes& times : *read) {
    require(!times.times_ns.empty() || !times.failure.empty() || !times.skipped.empty());
    require(times.clocks_mhz.empty() || times.clocks_mhz.size() == times.times_ns.size());
    for (const double ns : times.times_ns) require(ns > 0 && std::isfinite(ns));
    if (times.failure.empty() && times.skipped.empty())
      (void)guard::summarise(times.times_ns, times.clocks_mhz, 1980).is_ok();
  }
}

void try_matrix(std::string_view text) {
  const auto matrix = guard::parse_matrix(text, "fuzz.toml", {});
  if (!matrix.is_ok()) return;
  for (const guard::Cell& cell : matrix->cells_here()) {
    (void)matrix->text(cell);
    (void)guard::variant_of(*matrix, cell).is_ok();
  }
}

void try_history(std::string_view text) {
  const auto history = guard::parse_history(text, "fuzz.jsonl");
  if (!history.is_ok()) return;
  const auto series = guard::analyse_history(*history, {});
  (void)guard::render_history(*history, series, Terminal(false, false, true, 80));
  (void)guard::history_document(*history, series).dump();
}

// A journal is a file that is also written to; one for each fuzzing process.
void try_journal(std::string_view text) {
  static const std::string path = "/tmp/purlin-fuzz-" + std::to_string(::getpid()) + ".jsonl";
  const Json identity = Json::object({{"schema", "purlin.guard-pairs/1"}, {"baseline", "a"}});
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  require(file != nullptr);
  const std::string head = identity.dump() + "\n";
  require(std::fwrite(head.data(), 1, head.size(), file) == head.size());
  require(std::fwrite(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  const auto journal = guard::PairJournal::open(path, identity, 3);
  ::unlink(path.c_str());
  if (!journal.is_ok()) return;
  guard::SuiteGate gate(std::vector<guard::Thresholds>(3), {});
  for (const guard::PairJournal::Event& event : journal->events()) {
    require(event.item < 3);
    if (event.gave_up)
      gate.give_up(event.item, event.verdict, event.reason);
    else
      gate.add(event.item, event.pair);
  }
  gate.finish();
  for (std::size_t i = 0; i < 3; ++i) (void)gate.result(i);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 11) {
    case 0:
      (void)guard::parse_suite(text, "fuzz.toml").is_ok();
      break;
    case 1: {
      const auto samples = guard::parse_samples(text, "fuzz.csv");
      if (samples.is_ok()) (void)guard::compare_samples(*samples, *samples, {}, {});
      break;
    }
    case 2: {
      const auto json = Json::parse(text, {.max_bytes = 1 << 20, .max_depth = 50});
      if (json.is_ok()) (void)guard::baseline_from_json(*json).is_ok();
      break;
    }
    case 3:
      try_output(text, OutputFormat::kGoogleBenchmark);
      break;
    case 4:
      try_output(text, OutputFormat::kNvbench);
      break;
    case 5:
      try_output(text, OutputFormat::kHyperfine);
      break;
    case 6:
      try_output(text, OutputFormat::kCsv);
      break;
    case 7:
      try_output(text, OutputFormat::kRegex);
      break;
    case 8:
      try_matrix(text);
      break;
    case 9:
      try_history(text);
      break;
    default:
      try_journal(text);
  }
  return 0;
}
