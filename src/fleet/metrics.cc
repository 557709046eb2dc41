// SPDX-License-Identifier: Apache-2.0
#include "fleet/metrics.h"

#include <fmt/core.h>

#include <algorithm>

namespace purlin::fleet {
namespace {

std::string heading(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace

void RequestMetrics::count(std::string_view kind, int status, std::optional<double> seconds,
                           std::uint64_t received, std::uint64_t sent) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(kind), status}];
  received_ += received;
  sent_ += sent;
  if (!seconds) return;
  Latency& latency = latencies_[std::string(kind)];
  const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), *seconds);
  ++latency.buckets[static_cast<std::size_t>(bucket - kBounds.begin())];
  ++latency.count;
  latency.sum_s += *seconds;
}

std::string RequestMetrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string text =
      heading("purlin_http_requests_total", "counter", "Requests answered, by kind and status.");
  for (const auto& [key, count] : requests_)
    text += fmt::format("purlin_http_requests_total{{kind=\"{}\",status=\"{}\"}} {}\n", key.first,
                        key.second, count);
  text += heading("purlin_http_request_seconds", "histogram", "Time to answer, by kind.");
  for (const auto& [kind, latency] : latencies_) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kBounds.size(); ++i) {
      sum += latency.buckets[i];
      text += fmt::format("purlin_http_request_seconds_bucket{{kind=\"{}\",le=\"{}\"}} {}\n", kind,
                          kBounds[i], sum);
    }
    text += fmt::format(
        "purlin_http_request_seconds_bucket{{kind=\"{0}\",le=\"+Inf\"}} {1}\n"
        "purlin_http_request_seconds_sum{{kind=\"{0}\"}} {2}\n"
        "purlin_http_request_seconds_count{{kind=\"{0}\"}} {1}\n",
        kind, latency.count, latency.sum_s);
  }
  text += single("purlin_http_received_bytes_total", "counter", "Bytes of requests' bodies.",
                 static_cast<double>(received_));
  text += single("purlin_http_sent_bytes_total", "counter", "Bytes of answers' bodies.",
                 static_cast<double>(sent_));
  return text;
}

std::string RequestMetrics::single(std::string_view name, std::string_view type,
                                   std::string_view help, double value) {
  return heading(name, type, help) + fmt::format("{} {}\n", name, value);
}

}  // namespace purlin::fleet
