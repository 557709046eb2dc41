// SPDX-License-Identifier: Apache-2.0
#include "measure/output/benchmark_output.h"

#include "base/csv.h"
#include "base/regex.h"
#include "base/text.h"
#include "base/time.h"
#include "measure/output/times_collector.h"

#include <map>

namespace purlin::measure {
namespace {

constexpr std::size_t kMaxLine = 4096;
constexpr std::size_t kMaxPattern = 1000;

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
  TimesCollector collector;
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

Result<Regex> pattern_of(const OutputRules& rules) {
  if (rules.pattern.size() > kMaxPattern)
    return error(Code::kInvalid, "the pattern has {} bytes; at most {} are taken",
                 rules.pattern.size(), kMaxPattern);
  Result<Regex> pattern = Regex::compile(rules.pattern);
  if (!pattern.is_ok())
    return error(Code::kInvalid,
                 "pattern '{}' is no regular expression: {} (RE2's syntax: no back-references, no "
                 "look-around)",
                 rules.pattern, pattern.status().message());
  const int groups = pattern->groups();
  if (groups < 1 || groups > 3)
    return error(Code::kInvalid,
                 "pattern '{}' has {} groups; it needs one (the time), two (name, time) or three "
                 "(name, time, unit)",
                 rules.pattern, groups);
  return pattern;
}

Result<std::vector<BenchmarkTimes>> lines(std::string_view text, const OutputRules& rules) {
  PURLIN_ASSIGN(const Regex pattern, pattern_of(rules));
  const int groups = pattern.groups();
  TimesCollector collector;
  PURLIN_TRY(for_each_line(text, [&](std::string_view line, std::size_t number) -> Status {
    line = line.substr(0, kMaxLine);
    Regex::Groups match;
    if (!pattern.search(line, &match)) return Status::ok();
    const std::string unit = groups == 3 ? std::string(match[3]) : rules.unit;
    const std::string name(groups >= 2 ? match[1] : std::string_view());
    const std::string digits(match[groups >= 2 ? 2 : 1]);
    const std::optional<double> time = parse_double(digits);
    if (!time || ns_per(unit) == 0)
      return error(Code::kInvalid, "line {}: '{}' is no time in a known unit", number,
                   digits + " " + unit);
    return collector.add(name, *time * ns_per(unit));
  }));
  return collector.finish(fmt::format("no line matches '{}'", rules.pattern));
}

}  // namespace

Status check_output_rules(const OutputRules& rules) {
  return rules.format == OutputFormat::kRegex ? pattern_of(rules).status() : Status::ok();
}

Result<std::vector<BenchmarkTimes>> parse_benchmark_output(std::string_view text,
                                                           const OutputRules& rules,
                                                           const std::string& folder) {
  switch (rules.format) {
    case OutputFormat::kGoogleBenchmark:
      return parse_google_benchmark(text, rules);
    case OutputFormat::kNvbench:
      return parse_nvbench(text, folder);
    case OutputFormat::kHyperfine:
      return parse_hyperfine(text);
    case OutputFormat::kCsv:
      return csv(text, rules);
    case OutputFormat::kRegex:
      return lines(text, rules);
  }
  return error(Code::kInvalid, "unknown format of times");
}

}  // namespace purlin::measure
