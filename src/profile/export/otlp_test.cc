// SPDX-License-Identifier: Apache-2.0
#include "profile/export/otlp.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::profile {
namespace {

double number(const Json& text) { return std::stod(text.as_string()); }

double counted_in(const Json& histogram) {
  double sum = number(histogram["zeroCount"]);
  for (const Json& one : histogram["positive"]["bucketCounts"].items()) sum += number(one);
  return sum;
}

// As a consumer computes it: the upper bound of the bucket that has the rank.
double quantile(const Json& histogram, double q) {
  const double base = std::exp2(std::exp2(-histogram["scale"].as_double()));
  double seen = number(histogram["zeroCount"]);
  const double rank = q * number(histogram["count"]);
  double index = histogram["positive"]["offset"].as_double();
  for (const Json& one : histogram["positive"]["bucketCounts"].items()) {
    seen += number(one);
    index += 1;
    if (seen >= rank) return std::pow(base, index);
  }
  return 0;
}

const Json& metric(const Json& request, std::string_view name) {
  static const Json kNone;
  for (const Json& one :
       request["resourceMetrics"].items()[0]["scopeMetrics"].items()[0]["metrics"].items())
    if (one["name"].as_string() == name) return one;
  return kNone;
}

TEST(OtlpHistogram, AddsUpAndKeepsItsQuantiles) {
  Sketch sketch;
  Random random(7);
  for (int i = 0; i < 10'000; ++i) sketch.add(std::exp(4 + 12 * random.uniform()));
  const Json histogram = to_otlp_histogram(sketch);
  EXPECT_EQ(histogram["count"].as_string(), "10000");
  EXPECT_EQ(counted_in(histogram), 10'000);
  EXPECT_EQ(histogram["sum"].as_double(), sketch.total_ns());
  EXPECT_EQ(histogram["min"].as_double(), sketch.min_ns());
  EXPECT_EQ(histogram["max"].as_double(), sketch.max_ns());
  for (const double q : {0.1, 0.5, 0.95, 0.99})
    EXPECT_NEAR(quantile(histogram, q) / sketch.quantile(q), 1, 0.003) << q;
}

// The buckets are the sketch's, at each of its scales.
TEST(OtlpHistogram, HasTheBucketsOfTheSketch) {
  Sketch sketch;
  for (const double ns : {1.5, 2.0, 2.1, 1e3, 1e6}) sketch.add(ns, 2);
  for (const int scale : {Sketch::kScale, 3}) {
    sketch.reduce_to(scale);
    const Json histogram = to_otlp_histogram(sketch);
    EXPECT_EQ(histogram["scale"].as_int(), scale);
    const auto& counts = histogram["positive"]["bucketCounts"].items();
    const auto offset = histogram["positive"]["offset"].as_int();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const int bucket = static_cast<int>(offset) + static_cast<int>(i) + 1;
      const auto at = static_cast<std::size_t>(bucket - sketch.first_bucket());
      EXPECT_EQ(number(counts[i]), sketch.buckets()[at]) << bucket;
    }
    EXPECT_EQ(counted_in(histogram), 10);
  }
}

// A sampled launch weighs 3.5: no count may be lost or invented by rounding bucket by bucket.
TEST(OtlpHistogram, RoundsWeightsSoThatTheyAddUp) {
  Sketch sketch;
  for (int i = 0; i < 101; ++i) sketch.add(1'000 + 50 * i, 1.3);
  const Json histogram = to_otlp_histogram(sketch);
  EXPECT_EQ(histogram["count"].as_string(), "131");
  EXPECT_EQ(counted_in(histogram), 131);
}

TEST(OtlpHistogram, PutsWhatIsNoLongerThanANanosecondBelowTheBuckets) {
  Sketch sketch;
  sketch.add(0);
  sketch.add(1);
  const Json histogram = to_otlp_histogram(sketch);
  EXPECT_EQ(histogram["zeroCount"].as_string(), "2");
  EXPECT_EQ(histogram.find("positive"), nullptr);
}

TEST(OtlpProfile, HasOneHistogramForEachKernelShapeAndDevice) {
  Profile profile;
  profile.source = "purlin";
  profile.command = "train \"x\"";
  profile.labels.host = "gpu07";
  profile.labels.pod = "ml/train-0";
  profile.environment.recorded_at = "2026-11-20T12:43:00Z";
  profile.wall_ns = 2'000'000'000;
  profile.environment.devices.resize(1);
  profile.environment.devices[0].id = "cuda:0";
  for (const int grid : {1, 2}) {  // launch shapes of one kernel
    KernelRow& row = profile.kernels.emplace_back();
    row.name = "_Z4gemmPf";
    row.shape = "M=1,N=2,K=3";
    row.launch.grid = {static_cast<std::uint32_t>(grid), 1, 1};
    row.duration.add(5'000, 10);
  }
  profile.kernels.emplace_back().name = "never";
  CopyRow& copy = profile.copies.emplace_back();
  copy.kind = "h2d pageable";
  copy.bytes = 4096;
  copy.duration.add(900);
  const auto result = to_otlp(profile);
  ASSERT_TRUE(result.is_ok());
  const Json& kernels = metric(*result, "purlin.kernel.duration")["exponentialHistogram"];
  EXPECT_EQ(kernels["aggregationTemporality"].as_int(), 1);
  ASSERT_EQ(kernels["dataPoints"].size(), 1u);
  const Json& point = kernels["dataPoints"].items()[0];
  EXPECT_EQ(point["count"].as_string(), "20");
  EXPECT_EQ(point["timeUnixNano"].as_string(), "1795178580000000000");
  EXPECT_EQ(point["startTimeUnixNano"].as_string(), "1795178578000000000");
  EXPECT_EQ(point["attributes"].items()[0]["value"]["stringValue"].as_string(), "gemm(float*)");
  const Json& bytes = metric(*result, "purlin.copy.bytes")["sum"];
  EXPECT_TRUE(bytes["isMonotonic"].as_bool());
  EXPECT_EQ(bytes["dataPoints"].items()[0]["asDouble"].as_double(), 4096);
  const std::string text = result->dump();
  EXPECT_NE(text.find(R"({"key":"k8s.pod.name","value":{"stringValue":"train-0"}})"),
            std::string::npos);
  EXPECT_NE(text.find(R"("host.name")"), std::string::npos);
}

TEST(OtlpProfile, RefusesAProfileWithoutMetrics) {
  EXPECT_EQ(to_otlp(Profile()).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin::profile
