// SPDX-License-Identifier: Apache-2.0
#include "fleet/metrics.h"

#include "base/text.h"
#include "base/version.h"

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

std::string build_info() {
  return heading("purlin_build_info", "gauge", "The version of this server; always 1.") +
         fmt::format("purlin_build_info{{version=\"{}\"}} 1\n", version());
}

bool wants_openmetrics(std::string_view accept) {
  return accept.find("application/openmetrics-text") != std::string_view::npos;
}

std::string to_openmetrics(std::string_view text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() < 4 || words[0] != "#") {
      out += line + "\n";
      continue;
    }
    // "# TYPE NAME counter": the family of a counter or of an info is named without its ending.
    std::string family = words[2], rest = line.substr(line.find(words[2]) + words[2].size());
    for (const std::string_view ending : {"_total", "_info"})
      if (ends_with(family, ending)) family.resize(family.size() - ending.size());
    if (words[1] == "TYPE" && ends_with(words[2], "_info")) rest = " info";
    out += fmt::format("# {} {}{}\n", words[1], family, rest);
  }
  return out + "# EOF\n";
}

}  // namespace purlin::fleet
