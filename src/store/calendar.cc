// SPDX-License-Identifier: Apache-2.0
#include "store/calendar.h"

#include "base/text.h"

#include <fmt/core.h>

#include <chrono>

namespace purlin::store {
namespace {

constexpr std::int64_t kCalendarHourNs = 3'600'000'000'000;
constexpr std::int64_t kCalendarDayNs = 24 * kCalendarHourNs;
// What 64 bits of ns hold, also at the end of the year.
constexpr std::int64_t kFirstYear = 1970, kLastYear = 2261;

std::chrono::year_month_day date_of(std::int64_t ns) {
  return std::chrono::sys_days(std::chrono::days(ns / kCalendarDayNs));
}

std::int64_t begin_of(int year, unsigned month, unsigned day) {
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  return std::chrono::sys_days(date).time_since_epoch().count() * kCalendarDayNs;
}

int year_of(std::int64_t ns) { return static_cast<int>(date_of(ns).year()); }
unsigned month_of(std::int64_t ns) { return static_cast<unsigned>(date_of(ns).month()); }

}  // namespace

std::string period_name(Level level, std::int64_t ns) {
  const auto date = date_of(ns);
  const int year = static_cast<int>(date.year());
  const unsigned month = static_cast<unsigned>(date.month());
  if (level == Level::kMonths) return fmt::format("{:04}", year);
  if (level == Level::kDays) return fmt::format("{:04}-{:02}", year, month);
  return fmt::format("{:04}-{:02}-{:02}", year, month, static_cast<unsigned>(date.day()));
}

std::optional<std::int64_t> period_begin(Level level, std::string_view name) {
  const auto parts = split(name, '-');
  if (parts.size() != 3 - static_cast<std::size_t>(level)) return std::nullopt;
  std::int64_t numbers[3] = {1970, 1, 1};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = parse_int(parts[i]);
    const std::int64_t least = i == 0 ? kFirstYear : 1;
    if (!number || *number < least || *number > kLastYear) return std::nullopt;
    numbers[i] = *number;
  }
  const std::int64_t begin =
      begin_of(static_cast<int>(numbers[0]), static_cast<unsigned>(numbers[1]),
               static_cast<unsigned>(numbers[2]));
  return period_name(level, begin) == name ? std::optional(begin) : std::nullopt;
}

int slot_of(Level level, std::int64_t ns) {
  if (level == Level::kHours) return static_cast<int>(ns % kCalendarDayNs / kCalendarHourNs);
  if (level == Level::kDays) return static_cast<int>(static_cast<unsigned>(date_of(ns).day()));
  return static_cast<int>(month_of(ns));
}

std::int64_t slot_begin(Level level, std::int64_t period_ns, int slot) {
  if (level == Level::kHours) return period_ns + slot * kCalendarHourNs;
  if (level == Level::kDays) return period_ns + (slot - 1) * kCalendarDayNs;
  return begin_of(year_of(period_ns), static_cast<unsigned>(slot), 1);
}

std::int64_t slot_end(Level level, std::int64_t period_ns, int slot) {
  const std::int64_t begin = slot_begin(level, period_ns, slot);
  if (level == Level::kHours) return begin + kCalendarHourNs;
  return level == Level::kDays ? begin + kCalendarDayNs : month_end(begin);
}

std::int64_t day_begin(std::int64_t ns) { return ns - ns % kCalendarDayNs; }

std::int64_t month_begin(std::int64_t ns) { return begin_of(year_of(ns), month_of(ns), 1); }

std::int64_t month_end(std::int64_t ns) {
  const unsigned month = month_of(ns);
  return month == 12 ? begin_of(year_of(ns) + 1, 1, 1) : begin_of(year_of(ns), month + 1, 1);
}

std::int64_t point_of(Step step, std::int64_t ns) {
  if (step == Step::kHour) return ns - ns % kCalendarHourNs;
  if (step == Step::kDay) return day_begin(ns);
  return step == Step::kMonth ? month_begin(ns) : 0;
}

}  // namespace purlin::store
