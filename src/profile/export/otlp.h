// SPDX-License-Identifier: Apache-2.0
// OTLP/JSON metrics (OpenTelemetry protocol 1.x, an ExportMetricsServiceRequest): what an
// observability product takes over an OTLP/HTTP endpoint. A profile becomes exponential histograms
// of durations, one for each kernel, shape and device. guard/report uses the builder too.
//
// Integers of 64 bits are strings, as protobuf's JSON mapping demands. Names are data: escaped as
// JSON, otherwise unchanged. Formats: docs/formats/export.md. Values and pure functions.
#pragma once

#include "base/json/json.h"
#include "model/profile/profile.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::profile {

// Attributes of a point or a resource, in order; empty values are left out.
class OtlpAttributes {
 public:
  OtlpAttributes() : list_(Json::array()) {}
  OtlpAttributes& add(std::string_view key, std::string_view value);
  OtlpAttributes& append(const OtlpAttributes& more);
  const Json& list() const { return list_; }

 private:
  Json list_;
};

// The period that points are of, Unix time in ns.
struct OtlpPeriod {
  std::int64_t begin_ns = 0, end_ns = 0;
};

// One request: one resource, one scope, metrics in the order of their first point.
class OtlpMetrics {
 public:
  OtlpMetrics(OtlpAttributes resource, OtlpPeriod period)
      : resource_(std::move(resource)), period_(period) {}

  struct Kind {
    std::string_view name, unit, description;
  };
  void gauge(const Kind& metric, const OtlpAttributes& attributes, double value);
  void gauge(const Kind& metric, const OtlpAttributes& attributes, std::int64_t value);
  // A sum over the period that only grows.
  void sum(const Kind& metric, const OtlpAttributes& attributes, double value);
  // Empty sketches are left out.
  void histogram(const Kind& metric, const OtlpAttributes& attributes, const Sketch& durations);
  // Consumes what was added.
  Json request();

 private:
  struct Metric {
    Kind kind;
    const char* data;  // "gauge", "sum", "exponentialHistogram"
    Json points = Json::array();
  };
  Json& points_of(const Kind& metric, const char* data);
  Json point(const OtlpAttributes& attributes, bool of_period) const;
  OtlpAttributes resource_;
  OtlpPeriod period_;
  std::vector<Metric> metrics_;
};

// A sketch as the fields of an ExponentialHistogramDataPoint. Counts are rounded so that they add
// up to the rounded count.
Json to_otlp_histogram(const Sketch& sketch);

// The metrics of a profile. kInvalid where it has no kernels, copies or waits.
Result<Json> to_otlp(const Profile& profile);

}  // namespace purlin::profile
