// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include "base/os/wall_time.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <initializer_list>
#include <limits>
#include <thread>

namespace purlin {
namespace {

class SystemClock : public Clock {
 public:
  std::int64_t monotonic_ns() override {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  std::int64_t wall_ns() override {
    std::timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return wall_ns_of(now);
  }
  void sleep_ns(std::int64_t ns) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

std::int64_t wall_ns_of(const std::timespec& time) {
  constexpr std::int64_t kSecond = 1'000'000'000, kLast = std::numeric_limits<std::int64_t>::max();
  if (time.tv_sec < 0) return 0;
  if (time.tv_sec >= kLast / kSecond) return kLast;
  return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

std::string format_rfc3339(std::int64_t wall_ns) {
  const std::int64_t behind = wall_ns % 1'000'000'000 < 0 ? 1 : 0;  // downwards, also before 1970
  const std::time_t seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000 - behind);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

std::string format_rfc3339_ns(std::int64_t wall_ns) {
  std::string text = format_rfc3339(wall_ns);
  const std::int64_t part = wall_ns % 1'000'000'000;
  text.insert(text.size() - 1, fmt::format(".{:09}", part < 0 ? part + 1'000'000'000 : part));
  return text;
}

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";  // 0 = a digit
  if (text.size() <= kShape.size() || text.back() != 'Z') return std::nullopt;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < kShape.size(); ++i)
    if (kShape[i] == '0' ? !is_digit(text[i]) : text[i] != kShape[i]) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  std::tm parts{};
  parts.tm_year = number(0, 4) - 1900;
  parts.tm_mon = number(5, 2) - 1;
  parts.tm_mday = number(8, 2);
  parts.tm_hour = number(11, 2);
  parts.tm_min = number(14, 2);
  parts.tm_sec = number(17, 2);
  const std::tm wanted = parts;
  if (parts.tm_year < 70 || parts.tm_year > 361) return std::nullopt;
  const std::time_t seconds = timegm(&parts);
  // timegm carries over what is out of range: the 30th of February is no date.
  if (parts.tm_mon != wanted.tm_mon || parts.tm_mday != wanted.tm_mday ||
      parts.tm_hour != wanted.tm_hour || parts.tm_min != wanted.tm_min ||
      parts.tm_sec != wanted.tm_sec)
    return std::nullopt;

  std::string_view fraction = text.substr(kShape.size(), text.size() - kShape.size() - 1);
  std::int64_t ns = 0;
  if (!fraction.empty()) {
    if (fraction[0] != '.' || fraction.size() < 2 || fraction.size() > 10) return std::nullopt;
    fraction.remove_prefix(1);
    for (std::size_t i = 0; i < 9; ++i) {
      if (i < fraction.size() && !is_digit(fraction[i])) return std::nullopt;
      ns = ns * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
    }
  }
  return static_cast<std::int64_t>(seconds) * 1'000'000'000 + ns;
}

std::optional<double> ns_per_unit(std::string_view unit) {
  std::string word;
  for (const char c : unit) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (word.size() > 2 && word.back() == 's' && word != "ns") word.pop_back();
  struct Unit {
    double ns;
    std::initializer_list<std::string_view> words;
  };
  static const Unit kUnits[] = {
      {1, {"ns", "nsec", "nsecond", "nanosec", "nanosecond"}},
      {1e3, {"us", "µ", "μ", "µs", "μs", "usec", "usecond", "microsec", "microsecond"}},
      {1e6, {"ms", "msec", "msecond", "millisec", "millisecond", "milisecond"}},
      {1e9, {"s", "sec", "second"}},
  };
  for (const Unit& known : kUnits)
    for (const std::string_view name : known.words)
      if (word == name) return known.ns;
  return std::nullopt;
}

}  // namespace purlin
