// SPDX-License-Identifier: Apache-2.0
// RequestMetrics: how many requests of each kind there were, what came of them and how long they
// took, as Prometheus reads it; the same text as OpenMetrics 1.0. Bounded: kinds are the caller's
// few. [MT] every method.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace purlin::fleet {

class RequestMetrics {
 public:
  // `kind`: "get_object"; `seconds` from the request's last byte to the answer's first, none of
  // what was answered by its head alone.
  void count(std::string_view kind, int status, std::optional<double> seconds,
             std::uint64_t received, std::uint64_t sent);
  std::string text() const;

  // "# HELP NAME HELP\n# TYPE NAME TYPE\nNAME VALUE\n"
  static std::string single(std::string_view name, std::string_view type, std::string_view help,
                            double value);

 private:
  static constexpr std::array<double, 8> kBounds = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 10};
  struct Latency {
    std::array<std::uint64_t, kBounds.size() + 1> buckets{};
    std::uint64_t count = 0;
    double sum_s = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t, std::less<>> requests_;
  std::map<std::string, Latency, std::less<>> latencies_;
  std::uint64_t received_ = 0, sent_ = 0;
};

// purlin_build_info, with the version as label.
std::string build_info();

// By a request's Accept header.
bool wants_openmetrics(std::string_view accept);
// A text of Prometheus' format as OpenMetrics: families of counters without _total, the end marked.
std::string to_openmetrics(std::string_view text);

}  // namespace purlin::fleet
