// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <chrono>
#include <ctime>
#include <thread>

namespace purlin {
namespace {

class SystemClock : public Clock {
 public:
  std::int64_t monotonic_ns() override {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  std::int64_t wall_ns() override {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
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

std::string format_rfc3339(std::int64_t wall_ns) {
  const std::time_t seconds = static_cast<std::time_t>(wall_ns / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

}  // namespace purlin
