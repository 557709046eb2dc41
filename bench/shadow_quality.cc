// SPDX-License-Identifier: Apache-2.0
// bench_shadow_quality [DATA]: how often the runtime's shadow test demotes a winner wrongly, and
// how soon it finds one that became slower, on times recorded on real GPUs (default: shared/data).
//
// aa_h200.csv.gz: a kernel's successive launches in one process are pairs of equals (A/A); a coin
// says which of the two was the winner's, as it does on live launches. spaces/*.json.gz: the 32
// samples of two configs within 5 % of the best, paired in the order taken. A slowdown of 5 % is
// planted by multiplying the winner's times. Streams start anew at a random place and go round, so
// that drift and bad spells stay together. Everything is seeded. Prints JSON.
#include "base/files.h"
#include "base/gzip.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/random.h"
#include "base/text.h"
#include "gpu/replay/replay_space.h"
#include "model/document.h"
#include "runtime/slowdown_detector.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

using namespace purlin;
using runtime::SlowdownDetector;

namespace {

struct Pair {
  double a = 0, b = 0;
};
// Pairs in the order taken, of one kernel.
struct Series {
  std::string name;
  std::vector<std::vector<Pair>> runs;  // by process
};

double log_ratio(const Pair& pair, double planted, Random& random) {
  const bool a_is_winner = random.below(2) == 0;
  return std::log(planted * (a_is_winner ? pair.a / pair.b : pair.b / pair.a));
}

// Samples up to the alarm, at most `most`; most + 1 where there was none.
std::int64_t samples_to_alarm(const Series& series, double planted, std::int64_t most,
                              Random& random) {
  SlowdownDetector test;
  std::int64_t samples = 0;
  while (true) {
    const auto& run = series.runs[random.below(series.runs.size())];
    const std::size_t start = random.below(run.size());
    for (std::size_t i = 0; i < run.size(); ++i) {
      if (++samples > most) return most + 1;
      if (test.add(log_ratio(run[(start + i) % run.size()], planted, random))) return samples;
    }
  }
}

Result<std::vector<Series>> read_aa(const std::string& path) {
  PURLIN_ASSIGN(const std::string bytes, read_file(path));
  PURLIN_ASSIGN(const std::string text, gunzip(bytes, std::size_t{64} << 20));
  std::map<std::string, std::map<std::string, std::vector<double>>> times;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> cells = split(line, ',');
    const auto us = cells.size() < 4 ? std::nullopt : parse_double(cells[3]);
    if (us) times[cells[1]][cells[0]].push_back(*us);
  }
  std::vector<Series> all;
  for (const auto& [kernel, processes] : times) {
    Series series{kernel, {}};
    for (const auto& [process, values] : processes) {
      series.runs.emplace_back();
      for (std::size_t i = 0; i + 1 < values.size(); i += 2)
        series.runs.back().push_back({values[i], values[i + 1]});
    }
    all.push_back(std::move(series));
  }
  return all;
}

// One series for each recording: configs within 5 % of the best, each paired with itself.
Result<Series> read_space(const std::string& path) {
  PURLIN_ASSIGN(const gpu::ReplaySpace space, gpu::ReplaySpace::read(path));
  const auto mean = [](const gpu::RecordedRun& run) {
    double sum = 0;
    for (const double ms : run.samples_ms) sum += ms;
    return sum / static_cast<double>(run.samples_ms.size());
  };
  double best = INFINITY;
  for (const gpu::RecordedRun& run : space.runs())
    if (run.samples_ms.size() >= 8) best = std::min(best, mean(run));
  Series series{base_name(path), {}};
  for (const gpu::RecordedRun& run : space.runs()) {
    if (run.samples_ms.size() < 8 || mean(run) > 1.05 * best) continue;
    series.runs.emplace_back();
    for (std::size_t i = 0; i + 1 < run.samples_ms.size(); i += 2)
      series.runs.back().push_back({run.samples_ms[i], run.samples_ms[i + 1]});
    if (series.runs.size() == 64) break;
  }
  return series;
}

double quantile(std::vector<std::int64_t>& values, double q) {
  std::sort(values.begin(), values.end());
  return static_cast<double>(
      values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))]);
}

Json judge(const Series& series, std::int64_t samples) {
  Random random(hash64(series.name));
  std::vector<double> spread;
  for (const auto& run : series.runs)
    for (const Pair& pair : run) spread.push_back(std::abs(std::log(pair.a / pair.b)));
  std::sort(spread.begin(), spread.end());
  Json result = Json::object({{"series", series.name},
                              {"pairs", spread.size()},
                              {"pair_spread_p50", spread[spread.size() / 2]},
                              {"pair_spread_p95", spread[spread.size() * 95 / 100]}});
  // False alarms: streams of all lengths, as keys have few or many sampled launches.
  for (const double planted : {1.0, 1.01}) {
    std::int64_t alarms = 0, seen = 0, length = 100;
    while (seen < samples) {
      const std::int64_t until = samples_to_alarm(series, planted, length, random);
      alarms += until <= length ? 1 : 0;
      seen += std::min(until, length);
      length = length >= 100'000 ? 100 : length * 10;
    }
    result.set(planted == 1.0 ? "false_alarms" : "alarms_at_1_percent", alarms);
    if (planted == 1.0) result.set("sampled_launches", seen);
  }
  for (const double planted : {1.05, 1.10}) {
    constexpr int kStreams = 1000;
    std::vector<std::int64_t> until;
    int within = 0;
    for (int i = 0; i < kStreams; ++i) {
      until.push_back(samples_to_alarm(series, planted, 100'000, random));
      within += until.back() <= 200 ? 1 : 0;
    }
    const std::string name = planted == 1.05 ? "plus_5_percent" : "plus_10_percent";
    result.set(name, Json::object({{"p50_samples", quantile(until, 0.5)},
                                   {"p95_samples", quantile(until, 0.95)},
                                   {"within_200", static_cast<double>(within) / kStreams}}));
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "shared/data";
  const std::int64_t samples = argc > 2 ? parse_int(argv[2]).value_or(0) : 1'000'000;
  if (!file_exists(data + "/aa_h200.csv.gz") || samples < 1000) {
    std::fprintf(stderr, "usage: bench_shadow_quality DATA [SAMPLES]; no recordings in '%s'\n",
                 data.c_str());
    return argc > 1 ? 2 : 0;  // ./dev bench runs it where the data may not be
  }
  auto all = read_aa(data + "/aa_h200.csv.gz").value();
  const std::vector<std::string> names = list_directory(data + "/spaces").value();
  for (const std::string& name : names) {
    if (!ends_with(name, ".json.gz") || starts_with(name, "ktt-") || starts_with(name, "t4-"))
      continue;
    Series series = read_space(data + "/spaces/" + name).value();
    if (!series.runs.empty()) all.push_back(std::move(series));
  }
  Json results = Json::array();
  std::int64_t alarms = 0, seen = 0;
  for (const Series& series : all) {
    Json result = judge(series, samples);
    alarms += result["false_alarms"].as_int();
    seen += result["sampled_launches"].as_int();
    results.push(std::move(result));
  }
  Json document = new_document("purlin.bench-shadow-quality/1", host_environment());
  document.set("sampled_launches", seen);
  document.set("false_alarms", alarms);
  document.set("false_alarms_per_100000",
               1e5 * static_cast<double>(alarms) / static_cast<double>(seen));
  document.set("results", std::move(results));
  std::printf("%s\n", document.dump(1).c_str());
  return 0;
}
