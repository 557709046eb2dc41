// SPDX-License-Identifier: Apache-2.0
// Clocks. Tests pass a FakeClock in place of a Clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace purlin {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t monotonic_ns() = 0;  // [MT]
  virtual std::int64_t wall_ns() = 0;       // [MT] nanoseconds since 1970, UTC
  virtual void sleep_ns(std::int64_t ns) = 0;
};

// The machine's clock. Lives as long as the program.
Clock& system_clock();

class FakeClock : public Clock {
 public:
  std::int64_t monotonic_ns() override { return now_ns; }
  std::int64_t wall_ns() override { return now_ns; }
  void sleep_ns(std::int64_t ns) override { now_ns += ns; }
  std::int64_t now_ns = 1'000'000'000;
};

std::string format_rfc3339(std::int64_t wall_ns);     // "2026-11-20T12:43:00Z"
std::string format_rfc3339_ns(std::int64_t wall_ns);  // "2026-11-20T12:43:00.000000001Z"
// UTC only ("…Z"), with up to nine digits of a second, from 1970 to 2261; nullopt for other texts.
std::optional<std::int64_t> parse_rfc3339(std::string_view text);

// Nanoseconds of a unit of time, by the names that tools write: "us", "usec", "usecond",
// "Microseconds", "µs". nullopt for other words.
std::optional<double> ns_per_unit(std::string_view unit);

}  // namespace purlin
