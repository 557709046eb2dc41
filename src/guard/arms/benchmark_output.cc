// SPDX-License-Identifier: Apache-2.0
#include "guard/arms/benchmark_output.h"

#include "base/csv.h"
#include "base/files.h"
#include "base/json/json.h"
#include "base/text.h"
#include "guard/gate/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <regex>

namespace purlin::guard {
namespace {

constexpr std::size_t kMaxBenchmarks = 20000;
constexpr std::size_t kMaxSamples = 10'000'000;  // over all benchmarks of one output
constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxName = 1000;
constexpr std::size_t kMaxPattern = 1000;
constexpr std::int64_t kMaxMatchingNs = 10'000'000'000;  // of this thread, over one output

// The usual matcher of the standard library backtracks. Each further "a" doubles its time for
// "(a+)+b". A long line takes a deep recursion. libstdc++ has a second matcher whose time is
// polynomial in the length of the line. It has no back-references.
#ifdef __GLIBCXX__
constexpr auto kSyntax = std::regex_constants::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr auto kSyntax = std::regex_constants::ECMAScript;
#endif

std::int64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Collects samples by name, in the order the names first occur.
class Collector {
 public:
  Status add(std::string name, double time_ns, double clock_mhz = 0) {
    if (!is_time(time_ns))
      return error(Code::kInvalid, "'{}' has a time of {} ns; times must be positive", name,
                   time_ns);
    if (!is_clock(clock_mhz)) clock_mhz = 0;
    PURLIN_ASSIGN(BenchmarkTimes * times, find(std::move(name)));
    if (++samples_ > kMaxSamples)
      return error(Code::kInvalid, "the output has more than {} samples", kMaxSamples);
    times->times_ns.push_back(time_ns);
    times->clocks_mhz.push_back(clock_mhz);
    return Status::ok();
  }
  Status fail(std::string name, std::string why) {
    PURLIN_ASSIGN(BenchmarkTimes * times, find(std::move(name)));
    times->failure = why.empty() ? "it failed" : std::move(why);
    return Status::ok();
  }
  Result<std::vector<BenchmarkTimes>> finish(std::string_view expected) {
    if (all_.empty()) return error(Code::kInvalid, "the output holds no times: {}", expected);
    for (BenchmarkTimes& times : all_) {
      const bool clocks = std::any_of(times.clocks_mhz.begin(), times.clocks_mhz.end(),
                                      [](double clock) { return clock > 0; });
      if (!clocks) times.clocks_mhz.clear();
    }
    return std::move(all_);
  }

 private:
  Result<BenchmarkTimes*> find(std::string name) {
    if (name.size() > kMaxName) name.resize(kMaxName);
    const auto [position, added] = positions_.try_emplace(name, all_.size());
    if (added) {
      if (all_.size() == kMaxBenchmarks)
        return error(Code::kInvalid, "the output names more than {} benchmarks", kMaxBenchmarks);
      all_.push_back({std::move(name), {}, {}, ""});
    }
    return &all_[position->second];
  }

  std::vector<BenchmarkTimes> all_;
  std::map<std::string, std::size_t> positions_;
  std::size_t samples_ = 0;
};

Result<Json> parse_document(std::string_view text, std::string_view what) {
  // Programs print to stdout before and after their JSON; it begins at the first brace.
  const std::size_t begin = text.find('{');
  if (begin == std::string_view::npos)
    return error(Code::kInvalid, "the output is no {}: it holds no JSON object", what);
  const std::size_t end = text.rfind('}');
  Result<Json> document =
      Json::parse(text.substr(begin, end < begin ? text.npos : end - begin + 1));
  if (!document.is_ok()) return document.status().with_context(fmt::format("reading {}", what));
  return document;
}

Result<std::vector<BenchmarkTimes>> google_benchmark(std::string_view text,
                                                     const OutputRules& rules) {
  constexpr std::string_view kWhat = "Google Benchmark's JSON (--benchmark_format=json)";
  PURLIN_ASSIGN(const Json document, parse_document(text, kWhat));
  Collector collector;
  for (const Json& entry : document["benchmarks"].items()) {
    const std::string& type = entry["run_type"].as_string();
    if (!type.empty() && type != "iteration") continue;  // means and medians over repetitions
    const std::string& run = entry["run_name"].as_string();
    const std::string name = run.empty() ? entry["name"].as_string() : run;
    if (entry["error_occurred"].as_bool() || !entry["skip_message"].as_string().empty()) {
      const std::string& said = entry["error_message"].as_string();
      PURLIN_TRY(collector.fail(name, said.empty() ? entry["skip_message"].as_string() : said));
      continue;
    }
    const std::string& unit = entry["time_unit"].as_string();
    const double scale = ns_per(unit.empty() ? "ns" : unit);
    const Json* time = entry.find(rules.time);
    if (time == nullptr || !time->is_number() || scale == 0)
      return error(Code::kInvalid, "benchmark '{}' has no {} in a known unit", name, rules.time);
    PURLIN_TRY(collector.add(name, time->as_double() * scale));
  }
  return collector.finish("its list 'benchmarks' is empty or only holds aggregates");
}

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
  PURLIN_ASSIGN(const std::string bytes, read_file(join_path(folder, name), kMaxSamples * 4));
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

Result<std::vector<BenchmarkTimes>> nvbench(std::string_view text, const std::string& folder) {
  PURLIN_ASSIGN(const Json document, parse_document(text, "nvbench's JSON (--json or --jsonbin)"));
  Collector collector;
  for (const Json& benchmark : document["benchmarks"].items()) {
    for (const Json& state : benchmark["states"].items()) {
      const std::string name = benchmark["name"].as_string() + " " + state["name"].as_string();
      if (state["is_skipped"].as_bool()) {
        PURLIN_TRY(collector.fail(name, state["skip_reason"].as_string()));
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

Result<std::vector<BenchmarkTimes>> hyperfine(std::string_view text) {
  PURLIN_ASSIGN(const Json document, parse_document(text, "hyperfine's JSON (--export-json)"));
  Collector collector;
  for (const Json& result : document["results"].items()) {
    const std::string& name = result["command"].as_string();
    for (const Json& code : result["exit_codes"].items())
      if (code.as_int() != 0)
        PURLIN_TRY(
            collector.fail(name, fmt::format("it ended with exit status {}", code.as_int())));
    if (result["times"].items().empty())
      return error(Code::kInvalid, "hyperfine's result '{}' has no 'times'", name);
    for (const Json& time : result["times"].items())
      PURLIN_TRY(collector.add(name, time.as_double() * 1e9));
  }
  return collector.finish("its list 'results' is empty");
}

// Calls `use(line, number)` until it fails.
template <typename Use>
Status for_each_line(std::string_view text, Use use) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    PURLIN_TRY(use(text.substr(0, end), ++number));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return Status::ok();
}

Result<std::vector<BenchmarkTimes>> csv(std::string_view text, const OutputRules& rules) {
  Collector collector;
  std::map<std::string, std::size_t> columns;
  double scale = 0;
  const auto column = [&](const std::string& name) {
    const auto found = columns.find(name);
    return found == columns.end() ? std::string::npos : found->second;
  };
  PURLIN_TRY(for_each_line(text, [&](std::string_view line, std::size_t number) -> Status {
    if (trim(line).empty() || line.front() == '#') return Status::ok();
    const std::vector<std::string> fields = csv_cells(line.substr(0, kMaxLine));
    if (columns.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i)
        columns.emplace(std::string(trim(fields[i])), i);
      if (column(rules.time_column) == std::string::npos)
        return error(Code::kInvalid, "line {}: there is no column '{}'; the columns are: {}",
                     number, rules.time_column, line.substr(0, 200));
      const std::size_t suffix = rules.time_column.rfind('_');
      scale = suffix == std::string::npos ? 0 : ns_per(rules.time_column.substr(suffix + 1));
      if (scale == 0) scale = ns_per(rules.unit);
      return Status::ok();
    }
    const auto field = [&](const std::string& name) {
      const std::size_t at = column(name);
      return at < fields.size() ? std::string(trim(fields[at])) : "";
    };
    const std::optional<double> time = parse_double(field(rules.time_column));
    if (!time)
      return error(Code::kInvalid, "line {}: '{}' is no time", number, field(rules.time_column));
    const std::optional<double> clock =
        rules.clock_column.empty() ? std::nullopt : parse_double(field(rules.clock_column));
    const Status added = collector.add(field(rules.name_column), *time * scale, clock.value_or(0));
    return added.is_ok() ? added : added.with_context(fmt::format("line {}", number));
  }));
  return collector.finish("there are no lines after the header");
}

Result<std::vector<BenchmarkTimes>> lines(std::string_view text, const OutputRules& rules) {
  if (rules.pattern.size() > kMaxPattern)
    return error(Code::kInvalid, "the pattern has {} bytes; at most {} are taken",
                 rules.pattern.size(), kMaxPattern);
  std::regex pattern;
  try {
    pattern = std::regex(rules.pattern, kSyntax);
  } catch (const std::regex_error& wrong) {
    if (wrong.code() == std::regex_constants::error_complexity)
      return error(Code::kInvalid,
                   "pattern '{}' has a back-reference, for which matching can take for ever: write "
                   "it without",
                   rules.pattern);
    return error(Code::kInvalid, "pattern '{}' is no regular expression: {}", rules.pattern,
                 wrong.what());
  }
  const std::size_t groups = pattern.mark_count();
  if (groups < 1 || groups > 3)
    return error(Code::kInvalid,
                 "pattern '{}' has {} groups; it needs one (the time), two (name, time) or three "
                 "(name, time, unit)",
                 rules.pattern, groups);
  Collector collector;
  const std::int64_t begin_ns = thread_time_ns();
  PURLIN_TRY(for_each_line(text, [&](std::string_view line, std::size_t number) -> Status {
    line = line.substr(0, kMaxLine);
    if (thread_time_ns() - begin_ns > kMaxMatchingNs)
      return error(Code::kInvalid,
                   "line {}: pattern '{}' has taken {} s for the lines before it: begin it with "
                   "text that only lines with times have, and nest no repetitions",
                   number, rules.pattern, kMaxMatchingNs / 1'000'000'000);
    std::match_results<std::string_view::const_iterator> match;
    try {
      if (!std::regex_search(line.begin(), line.end(), match, pattern)) return Status::ok();
    } catch (const std::regex_error& wrong) {
      return error(Code::kInvalid, "line {}: pattern '{}' is too expensive: {}", number,
                   rules.pattern, wrong.what());
    }
    const std::string unit = groups == 3 ? match[3].str() : rules.unit;
    const std::string name = groups >= 2 ? match[1].str() : "";
    const std::string digits = match[groups >= 2 ? 2 : 1].str();
    const std::optional<double> time = parse_double(digits);
    if (!time || ns_per(unit) == 0)
      return error(Code::kInvalid, "line {}: '{}' is no time in a known unit", number,
                   digits + " " + unit);
    return collector.add(name, *time * ns_per(unit));
  }));
  return collector.finish(fmt::format("no line matches '{}'", rules.pattern));
}

}  // namespace

double ns_per(std::string_view unit) {
  if (unit == "ns" || unit == "nsec") return 1;
  if (unit == "us" || unit == "µs" || unit == "μs" || unit == "usec") return 1e3;
  if (unit == "ms" || unit == "msec") return 1e6;
  if (unit == "s" || unit == "sec") return 1e9;
  return 0;
}

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

Result<std::vector<BenchmarkTimes>> parse_benchmark_output(std::string_view text,
                                                           const OutputRules& rules,
                                                           const std::string& folder) {
  switch (rules.format) {
    case OutputFormat::kGoogleBenchmark:
      return google_benchmark(text, rules);
    case OutputFormat::kNvbench:
      return nvbench(text, folder);
    case OutputFormat::kHyperfine:
      return hyperfine(text);
    case OutputFormat::kCsv:
      return csv(text, rules);
    case OutputFormat::kRegex:
      return lines(text, rules);
  }
  return error(Code::kInvalid, "unknown format of times");
}

}  // namespace purlin::guard
