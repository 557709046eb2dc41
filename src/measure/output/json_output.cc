// SPDX-License-Identifier: Apache-2.0
// The JSON of Google Benchmark, nvbench and hyperfine.
#include "base/files.h"
#include "base/json/json.h"
#include "base/json/json_dialect.h"
#include "base/text.h"
#include "measure/output/times_collector.h"

#include <cmath>
#include <cstring>

namespace purlin::measure {
namespace {

Result<Json> parse_document(std::string_view text, std::string_view what) {
  // Programs print to stdout before and after their JSON; it begins at the first brace.
  const std::size_t begin = text.find('{');
  if (begin == std::string_view::npos)
    return error(Code::kInvalid, "the output is no {}: it holds no JSON object", what);
  const std::size_t end = text.rfind('}');
  const bool cut_short = end == std::string_view::npos || end < begin;
  // Google Benchmark writes NaN for a time or counter that it could not compute.
  Result<Json> document =
      Json::parse(without_non_finite(text.substr(begin, cut_short ? text.npos : end - begin + 1)));
  if (!document.is_ok()) return document.status().with_context(fmt::format("reading {}", what));
  return document;
}

// Releases before 1.5 do not mark aggregates. They are found by their names: a benchmark's name
// and the statistic. A statistic of the user's own occurs fewer times than the repetitions.
class OldAggregates {
 public:
  explicit OldAggregates(const Json& benchmarks) {
    for (const Json& entry : benchmarks.items()) ++counts_[entry["name"].as_string()];
  }
  bool has(const std::string& name) const {
    for (const char* suffix : {"_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS"}) {
      if (!ends_with(name, suffix)) continue;
      const std::string base = name.substr(0, name.size() - std::strlen(suffix));
      if (counts_.count(base) != 0) return true;
      // With report_aggregates_only the repetitions themselves are missing.
      if (counts_.count(base + "_mean") != 0 && counts_.count(base + "_stddev") != 0) return true;
    }
    for (std::size_t at = name.rfind('_'); at != std::string::npos && at > 0;
         at = name.rfind('_', at - 1)) {
      const auto base = counts_.find(name.substr(0, at));
      if (base != counts_.end() && base->second > counts_.at(name)) return true;
    }
    return false;
  }

 private:
  std::map<std::string, int> counts_;
};

bool is_aggregate(const Json& entry, const OldAggregates& old) {
  if (const std::string& type = entry["run_type"].as_string(); !type.empty())
    return type != "iteration";
  return entry.find("aggregate_name") != nullptr || old.has(entry["name"].as_string());
}

}  // namespace

Result<std::vector<BenchmarkTimes>> parse_google_benchmark(std::string_view text,
                                                           const OutputRules& rules) {
  constexpr std::string_view kWhat = "Google Benchmark's JSON (--benchmark_format=json)";
  PURLIN_ASSIGN(const Json document, parse_document(text, kWhat));
  const OldAggregates old(document["benchmarks"]);
  TimesCollector collector;
  for (const Json& entry : document["benchmarks"].items()) {
    if (is_aggregate(entry, old)) continue;
    const std::string& run = entry["run_name"].as_string();
    const std::string name = run.empty() ? entry["name"].as_string() : run;
    if (const Json* repetition = entry.find("repetition_index"))
      PURLIN_TRY(collector.once(fmt::format("{} (repetition {})", name, repetition->as_int())));
    if (entry["error_occurred"].as_bool()) {
      // SkipWithError, before 1.8 the only way to skip.
      PURLIN_TRY(collector.skip(name, "with an error: " + entry["error_message"].as_string()));
      continue;
    }
    if (entry["skipped"].as_bool() || !entry["skip_message"].as_string().empty()) {
      PURLIN_TRY(collector.skip(name, entry["skip_message"].as_string()));
      continue;
    }
    const std::string& unit = entry["time_unit"].as_string();
    const double scale = ns_per(unit.empty() ? "ns" : unit);
    const Json* time = entry.find(rules.time);
    if (time != nullptr && time->is_null()) {
      PURLIN_TRY(collector.fail(name, fmt::format("its {} is no number", rules.time)));
      continue;
    }
    if (time == nullptr || !time->is_number() || scale == 0)
      return error(Code::kInvalid, "benchmark '{}' has no {} in a known unit", name, rules.time);
    PURLIN_TRY(collector.add(name, time->as_double() * scale));
  }
  return collector.finish("its list 'benchmarks' is empty or only holds aggregates");
}

namespace {

// nvbench writes numbers as texts.
double number_of(const Json& value) {
  if (value.is_number()) return value.as_double();
  return parse_double(value.as_string()).value_or(std::nan(""));
}

const Json* summary_of(const Json& state, std::string_view tag) {
  for (const Json& summary : state["summaries"].items())
    if (summary["tag"].as_string() == tag) return &summary;
  return nullptr;
}
const Json& field_of(const Json& summary, std::string_view name) {
  static const Json none;
  for (const Json& field : summary["data"].items())
    if (field["name"].as_string() == name) return field["value"];
  return none;
}

// 32-bit little-endian floats, in the number that the summary gives; empty without the file.
Result<std::vector<double>> sample_file(const Json& state, std::string_view tag,
                                        const std::string& folder) {
  const Json* summary = folder.empty() ? nullptr : summary_of(state, tag);
  if (summary == nullptr) return std::vector<double>{};
  const std::string& name = field_of(*summary, "filename").as_string();
  // The name is foreign input: only files below the folder are opened.
  if (name.empty() || name.front() == '/' || name.find("..") != std::string::npos ||
      !file_exists(join_path(folder, name)))
    return std::vector<double>{};
  PURLIN_ASSIGN(const std::string bytes, read_file(join_path(folder, name), kMaxOutputSamples * 4));
  const double size = number_of(field_of(*summary, "size"));
  if (static_cast<double>(bytes.size()) != 4 * size)
    return error(Code::kInvalid,
                 "nvbench's sample file '{}' has {} bytes where {} floats were "
                 "announced",
                 name, bytes.size(), size);
  std::vector<double> values;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i, 4);
    values.push_back(static_cast<double>(value));
  }
  return values;
}

}  // namespace

Result<std::vector<BenchmarkTimes>> parse_nvbench(std::string_view text,
                                                  const std::string& folder) {
  PURLIN_ASSIGN(const Json document, parse_document(text, "nvbench's JSON (--json or --jsonbin)"));
  TimesCollector collector;
  for (const Json& benchmark : document["benchmarks"].items()) {
    for (const Json& state : benchmark["states"].items()) {
      const std::string name = benchmark["name"].as_string() + " " + state["name"].as_string();
      PURLIN_TRY(collector.once(name));
      if (state["is_skipped"].as_bool()) {
        PURLIN_TRY(collector.skip(name, state["skip_reason"].as_string()));
        continue;
      }
      PURLIN_ASSIGN(const std::vector<double> times,
                    sample_file(state, "nv/json/bin:nv/cold/sample_times", folder));
      PURLIN_ASSIGN(std::vector<double> clocks,
                    sample_file(state, "nv/json/freqs-bin:nv/cold/sample_freqs", folder));
      const Json* clock = summary_of(state, "nv/cold/sm_clock_rate/mean");
      const double mean_clock = clock == nullptr ? 0 : number_of(field_of(*clock, "value"));
      if (!times.empty()) {
        if (clocks.size() != times.size())
          clocks.assign(times.size(), std::isfinite(mean_clock) ? mean_clock : 0);
        for (std::size_t i = 0; i < times.size(); ++i)
          PURLIN_TRY(collector.add(name, times[i] * 1e9, clocks[i] / 1e6));
        continue;
      }
      const Json* summary = nullptr;
      for (const char* tag : {"nv/cold/time/gpu/median", "nv/cold/time/gpu/mean",
                              "nv/batch/time/gpu/mean", "nv/cpu_only/time/cpu/mean"})
        if (summary == nullptr) summary = summary_of(state, tag);
      if (summary == nullptr)
        return error(Code::kInvalid, "nvbench's state '{}' has no GPU time", name);
      PURLIN_TRY(collector.add(name, number_of(field_of(*summary, "value")) * 1e9,
                               std::isfinite(mean_clock) ? mean_clock / 1e6 : 0));
    }
  }
  return collector.finish("its benchmarks have no states");
}

namespace {

// A scan gives one command, or one name, to several results. Those are told apart by their
// parameters, and where these are equal too by their place.
std::vector<std::string> hyperfine_names(const Json& results) {
  std::vector<std::string> names;
  std::map<std::string, int> shared;
  for (const Json& result : results.items()) {
    names.push_back(result["command"].as_string());
    ++shared[names.back()];
  }
  std::map<std::string, int> with_parameters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (shared.at(names[i]) > 1) {
      std::map<std::string_view, const Json*> sorted;  // their order is that of the command line
      for (const Json::Member& one : results.items()[i]["parameters"].members())
        sorted[one.key] = &one.value;
      for (const auto& [key, value] : sorted)
        names[i] += fmt::format("{}{}={}", names[i].empty() ? "" : " ", key,
                                value->is_string() ? value->as_string() : value->dump());
    }
    ++with_parameters[names[i]];
  }
  std::map<std::string, int> place;
  for (std::string& name : names)
    if (with_parameters.at(name) > 1)
      name += fmt::format("{}#{}", name.empty() ? "" : " ", ++place[name]);
  return names;
}

}  // namespace

Result<std::vector<BenchmarkTimes>> parse_hyperfine(std::string_view text) {
  PURLIN_ASSIGN(const Json document, parse_document(text, "hyperfine's JSON (--export-json)"));
  TimesCollector collector;
  const std::vector<std::string> names = hyperfine_names(document["results"]);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Json& result = document["results"].items()[i];
    PURLIN_TRY(collector.once(names[i]));
    for (const Json& code : result["exit_codes"].items()) {
      if (code.is_null()) {
        PURLIN_TRY(collector.fail(names[i], "a signal ended it"));
      } else if (code.as_int() != 0) {
        PURLIN_TRY(
            collector.fail(names[i], fmt::format("it ended with exit status {}", code.as_int())));
      }
    }
    if (result["times"].items().empty())
      return error(Code::kInvalid, "hyperfine's result '{}' has no 'times'", names[i]);
    for (const Json& time : result["times"].items())
      PURLIN_TRY(collector.add(names[i], time.as_double() * 1e9));
  }
  return collector.finish("its list 'results' is empty");
}

}  // namespace purlin::measure
