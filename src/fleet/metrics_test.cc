// SPDX-License-Identifier: Apache-2.0
#include "fleet/metrics.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

TEST(RequestMetrics, AreWhatPrometheusReads) {
  RequestMetrics metrics;
  metrics.count("get_object", 200, 0.002, 0, 100);
  metrics.count("get_object", 200, 0.5, 0, 50);
  metrics.count("get_object", 404, 60, 7, 1);
  metrics.count("refused", 401, std::nullopt, 0, 3);
  const std::string text = metrics.text();
  for (const char* line :
       {"# TYPE purlin_http_requests_total counter\n",
        "purlin_http_requests_total{kind=\"get_object\",status=\"200\"} 2\n",
        "purlin_http_requests_total{kind=\"get_object\",status=\"404\"} 1\n",
        "# TYPE purlin_http_request_seconds histogram\n",
        "purlin_http_request_seconds_bucket{kind=\"get_object\",le=\"0.001\"} 0\n",
        "purlin_http_request_seconds_bucket{kind=\"get_object\",le=\"0.003\"} 1\n",
        "purlin_http_request_seconds_bucket{kind=\"get_object\",le=\"1\"} 2\n",
        "purlin_http_request_seconds_bucket{kind=\"get_object\",le=\"10\"} 2\n",
        "purlin_http_request_seconds_bucket{kind=\"get_object\",le=\"+Inf\"} 3\n",
        "purlin_http_request_seconds_sum{kind=\"get_object\"} 60.502\n",
        "purlin_http_request_seconds_count{kind=\"get_object\"} 3\n",
        "purlin_http_received_bytes_total 7\n", "purlin_http_sent_bytes_total 154\n",
        "purlin_http_requests_total{kind=\"refused\",status=\"401\"} 1\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "in\n" << text;
  EXPECT_EQ(text.find("seconds_count{kind=\"refused\"}"), std::string::npos);
}

TEST(OpenMetrics, NamesFamiliesWithoutTheirEnding) {
  const std::string text =
      build_info() + RequestMetrics::single("purlin_x_total", "counter", "Requests ever.", 3) +
      RequestMetrics::single("purlin_bytes", "gauge", "Bytes.", 1);
  const std::string open = to_openmetrics(text);
  for (const char* line :
       {"# TYPE purlin_build info\n", "purlin_build_info{version=\"", "# TYPE purlin_x counter\n",
        "# HELP purlin_x Requests ever.\n", "purlin_x_total 3\n", "# TYPE purlin_bytes gauge\n"})
    EXPECT_NE(open.find(line), std::string::npos) << line << "in\n" << open;
  EXPECT_TRUE(open.ends_with("\n# EOF\n")) << open;
  EXPECT_EQ(open.find("# TYPE purlin_x_total"), std::string::npos);
}

TEST(OpenMetrics, IsAskedForByName) {
  EXPECT_TRUE(wants_openmetrics("application/openmetrics-text;version=1.0.0;q=0.8,text/plain"));
  EXPECT_FALSE(wants_openmetrics("text/plain;version=0.0.4"));
  EXPECT_FALSE(wants_openmetrics(""));
}

}  // namespace
}  // namespace purlin::fleet
