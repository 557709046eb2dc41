// SPDX-License-Identifier: Apache-2.0
// Documents and the smaller nouns they hold: launch shapes, evaluations.
#include "model/document.h"

#include "base/version.h"
#include "model/device/launch.h"
#include "model/evaluation.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(Document, StartsWithSchemaVersionAndEnvironment) {
  Environment environment;
  environment.build = "abc";
  const Json document = new_document("purlin.report/1", environment);
  EXPECT_EQ(document.members()[0].key, "schema");
  EXPECT_EQ(document["tool_version"].as_string(), version());
  EXPECT_EQ(document["environment"], to_json(environment));
  EXPECT_TRUE(check_schema(document, "purlin.report", 1).is_ok());
  EXPECT_TRUE(check_schema(document, "purlin.report", 2).is_ok());
}

TEST(Document, OtherAndNewerSchemasAreRefusedDifferently) {
  const auto code = [](std::string_view schema) {
    return check_schema(Json::object({{"schema", schema}}), "purlin.report", 1).code();
  };
  EXPECT_EQ(code("purlin.report/1"), Code::kOk);
  EXPECT_EQ(code("purlin.report/2"), Code::kCorrupt);
  for (const char* other :
       {"purlin.tune/1", "purlin.report", "purlin.report/x", "", "/1", "purlin.report/0"})
    EXPECT_EQ(code(other), Code::kInvalid) << other;
  EXPECT_EQ(check_schema(Json(), "purlin.report", 1).code(), Code::kInvalid);
}

TEST(LaunchShape, TextAndJson) {
  LaunchShape shape;
  shape.grid = {128, 64, 1};
  shape.block = {256, 1, 1};
  EXPECT_EQ(to_text(shape), "128x64x1 / 256x1x1");
  shape.cluster = {2, 1, 1};
  shape.dynamic_shared_bytes = 4096;
  EXPECT_EQ(to_text(shape), "128x64x1 / 256x1x1 cluster 2x1x1 shared 4096");
  // OpenCL may choose the local size, and then it is not known.
  LaunchShape unknown = shape;
  unknown.block = {0, 0, 0};
  EXPECT_TRUE(to_json(unknown)["block"].is_null());
  EXPECT_NE(to_text(unknown).find(" / ?"), std::string::npos) << to_text(unknown);
  EXPECT_EQ(launch_from_json(to_json(shape)), shape);
  EXPECT_EQ(launch_from_json(Json()), LaunchShape{});
  const Json odd = Json::object({{"grid", Json::array({-1, "x", 1e30, 4})}});
  EXPECT_EQ(launch_from_json(odd).grid, (Dim3{0, 1, 1}));
}

TEST(Evaluation, JsonRoundTrip) {
  Evaluation evaluation;
  evaluation.config = parse_config("BM=64,V=True").value();
  evaluation.samples = {{1.5, 1980}, {1.25, 1700}};
  evaluation.time_ms = 1.375;
  evaluation.raced_out = true;
  evaluation.compile_s = 0.5;
  evaluation.cost_s = 2;
  evaluation.cumulative_cost_s = 7;
  evaluation.registers = 40;
  evaluation.shared_bytes = 1024;
  evaluation.cached_binary = true;
  const Json written = to_json(evaluation);
  const Evaluation read = evaluation_from_json(Json::parse(written.dump()).value()).value();
  EXPECT_EQ(to_json(read), written);
  EXPECT_EQ(read.samples[1].sm_clock_mhz, 1700);
  EXPECT_EQ(read.config, evaluation.config);
}

TEST(Evaluation, FailuresHaveNoTimeAndAreNamed) {
  Evaluation evaluation;
  evaluation.status = EvaluationStatus::kOutOfBounds;
  evaluation.message = "wrote past the end of C";
  const Json written = to_json(evaluation);
  EXPECT_EQ(written.find("time_ms"), nullptr);
  EXPECT_EQ(written["status"].as_string(), "out_of_bounds");
  EXPECT_EQ(evaluation_from_json(written)->message, evaluation.message);
  EXPECT_FALSE(evaluation_from_json(Json::object({{"config", Json::object()}})).is_ok());
  EXPECT_FALSE(evaluation_from_json(Json::object({{"config", Json::object()}, {"status", "great"}}))
                   .is_ok());
  EXPECT_FALSE(status_from_name("great").has_value());
}

// A journal of another version, or of a clock that did not work, ends no session.
TEST(Evaluation, ARecordedTimeThatIsNoneIsAFailure) {
  for (const double ms : {0.0, -1.0, 1e-9, 1e300}) {
    Evaluation evaluation;
    evaluation.time_ms = ms;
    evaluation.samples = {{ms, 0}, {1, 0}};
    const Result<Evaluation> read = evaluation_from_json(to_json(evaluation));
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    EXPECT_EQ(read->status, EvaluationStatus::kLaunch);
    EXPECT_NE(read->message.find("its recorded time"), std::string::npos);
    EXPECT_EQ(read->time_ms, 0);
  }
  EXPECT_TRUE(evaluation_from_json(to_json(Evaluation{}))->ok());  // only compiled
  Evaluation evaluation;
  evaluation.time_ms = 1;
  evaluation.samples = {{-1, 0}, {0, 0}, {1, 0}, {1e300, 0}};
  EXPECT_EQ(evaluation_from_json(to_json(evaluation))->samples.size(), 2u);
}

TEST(Evaluation, MedianOfEvenAndOdd) {
  EXPECT_EQ(median_ms({{3}, {1}, {2}}), 2);
  EXPECT_EQ(median_ms({{4}, {1}, {3}, {2}}), 2.5);
  EXPECT_EQ(median_ms({{4}}), 4);
}

}  // namespace
}  // namespace purlin
