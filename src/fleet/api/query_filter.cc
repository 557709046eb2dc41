// SPDX-License-Identifier: Apache-2.0
#include "fleet/api/query_filter.h"

#include "base/text.h"
#include "base/time.h"

#include <algorithm>
#include <cmath>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kOneSecondNs = 1'000'000'000, kOneHourNs = 3600 * kOneSecondNs,
                       kDefaultTimeNs = 7 * 24 * kOneHourNs;
constexpr std::size_t kMaxValueBytes = 4096, kMaxDimensions = 6;
constexpr double kMaxSeconds = 9e9;

std::int64_t down_to_hour(std::int64_t ns) {
  return ns - ((ns % kOneHourNs) + kOneHourNs) % kOneHourNs;
}

}  // namespace

std::vector<Parameter> filter_parameters() {
  std::vector<Parameter> all = {
      {"begin", "string", "first hour: RFC 3339, seconds since 1970, or -7d (the default)"},
      {"end", "string", "the hour after the last one; now by default"}};
  for (int i = 0; i < store::kDimensions; ++i)
    all.push_back({store::name_of(static_cast<store::Dimension>(i)), "string", "exact value"});
  return all;
}

std::vector<Parameter> filter_parameters(std::vector<Parameter> own) {
  std::vector<Parameter> all = filter_parameters();
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

Result<std::int64_t> parse_time(std::string_view text, std::int64_t now_ns) {
  if (const std::optional<std::int64_t> time = parse_rfc3339(text)) return *time;
  if (starts_with(text, "-"))
    if (const std::optional<double> ago = parse_duration_s(text.substr(1));
        ago && *ago < kMaxSeconds)
      return now_ns - static_cast<std::int64_t>(*ago * 1e9);
  if (const std::optional<double> seconds = parse_double(text);
      seconds && *seconds >= 0 && *seconds < kMaxSeconds)
    return static_cast<std::int64_t>(*seconds * 1e9);
  return error(Code::kInvalid,
               "'{}' is no time: give RFC 3339 in UTC, seconds since 1970, or a time ago such as "
               "-7d",
               text.substr(0, 40));
}

Result<store::Filter> parse_filter(const NamedValues& query, std::int64_t now_ns) {
  store::Filter filter;
  const std::string& begin = value_of(query, "begin");
  const std::string& end = value_of(query, "end");
  filter.begin_ns = now_ns - kDefaultTimeNs;
  filter.end_ns = now_ns + kOneHourNs - 1;
  if (!begin.empty()) {
    PURLIN_ASSIGN(filter.begin_ns, parse_time(begin, now_ns));
  }
  if (!end.empty()) {
    PURLIN_ASSIGN(filter.end_ns, parse_time(end, now_ns));
    filter.end_ns += kOneHourNs - 1;
  }
  filter.begin_ns = down_to_hour(filter.begin_ns);
  filter.end_ns = down_to_hour(filter.end_ns);
  if (filter.begin_ns >= filter.end_ns) return error(Code::kInvalid, "'begin' is not before 'end'");
  for (const auto& [name, value] : query) {
    const std::optional<store::Dimension> dimension = store::dimension_of(name);
    if (!dimension) continue;
    if (value.size() > kMaxValueBytes)
      return error(Code::kInvalid, "'{}' has more than {} bytes", name, kMaxValueBytes);
    filter[*dimension] = value;
  }
  return filter;
}

Result<store::Step> parse_step(std::string_view text, store::Step otherwise) {
  if (text.empty()) return otherwise;
  if (text == "all") return store::Step::kAll;
  if (text == "hour") return store::Step::kHour;
  if (text == "day") return store::Step::kDay;
  if (text == "month") return store::Step::kMonth;
  return error(Code::kInvalid, "'step' is all, hour, day or month");
}

Result<std::vector<store::Dimension>> parse_dimensions(std::string_view text) {
  std::vector<store::Dimension> dimensions;
  if (text.empty()) return dimensions;
  for (const std::string& name : split(text, ',')) {
    const std::optional<store::Dimension> dimension = store::dimension_of(name);
    if (!dimension || dimensions.size() == kMaxDimensions) {
      std::vector<std::string> names;
      for (int i = 0; i < store::kDimensions; ++i)
        names.emplace_back(store::name_of(static_cast<store::Dimension>(i)));
      return error(Code::kInvalid, "'by' has up to {} of: {}", kMaxDimensions, join(names, ", "));
    }
    dimensions.push_back(*dimension);
  }
  return dimensions;
}

Result<std::size_t> parse_limit(std::string_view text, std::size_t otherwise, std::size_t most) {
  if (text.empty()) return otherwise;
  const std::optional<std::int64_t> limit = parse_int(text);
  if (!limit || *limit < 1 || *limit > static_cast<std::int64_t>(most))
    return error(Code::kInvalid, "'limit' is a number from 1 to {}", most);
  return static_cast<std::size_t>(*limit);
}

}  // namespace purlin::fleet
