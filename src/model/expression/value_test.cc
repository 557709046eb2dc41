// SPDX-License-Identifier: Apache-2.0
#include "model/expression/value.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(Value, TextKeepsTypesApart) {
  EXPECT_EQ(to_text(Value(std::int64_t{2})), "2");
  EXPECT_EQ(to_text(Value(2.0)), "2.0");
  EXPECT_EQ(to_text(Value(0.1)), "0.1");
  EXPECT_EQ(to_text(Value(1e300)), "1e+300");
  EXPECT_EQ(to_text(Value(true)), "True");
  EXPECT_EQ(to_text(Value(std::string("row"))), "row");
}

TEST(Value, JsonRoundTripKeepsTypes) {
  for (const Value& value :
       {Value(std::int64_t{-3}), Value(3.0), Value(0.1), Value(false), Value(std::string("3"))}) {
    const Json read = Json::parse(to_json(value).dump()).value();
    EXPECT_EQ(value_from_json(read).value(), value) << to_text(value);
  }
  EXPECT_FALSE(value_from_json(Json()).is_ok());
  EXPECT_FALSE(value_from_json(Json::array({1})).is_ok());
}

TEST(Value, TruthIsPythons) {
  EXPECT_FALSE(truthy(Value(std::int64_t{0})));
  EXPECT_FALSE(truthy(Value(0.0)));
  EXPECT_FALSE(truthy(Value(std::string())));
  EXPECT_TRUE(truthy(Value(std::string("0"))));
  EXPECT_TRUE(truthy(Value(-1.5)));
  EXPECT_FALSE(to_double(Value(std::string("1"))).is_ok());
}

TEST(Config, KeepsOrderAndReplaces) {
  Config config;
  config.set("B", std::int64_t{1});
  config.set("A", true);
  config.set("B", 0.5);
  EXPECT_EQ(config.text(), "B=0.5 A=True");
  EXPECT_EQ(*config.find("A"), Value(true));
  EXPECT_EQ(config.find("C"), nullptr);
}

TEST(Config, ParsesWhatTheCommandLineSays) {
  const Config config = parse_config(" BM=64, X=0.5 ,ON=True,OFF=false,L=row,N=nan,E=").value();
  EXPECT_EQ(*config.find("BM"), Value(std::int64_t{64}));
  EXPECT_EQ(*config.find("X"), Value(0.5));
  EXPECT_EQ(*config.find("ON"), Value(true));
  EXPECT_EQ(*config.find("OFF"), Value(false));
  EXPECT_EQ(*config.find("L"), Value(std::string("row")));
  EXPECT_EQ(*config.find("N"), Value(std::string("nan")));
  EXPECT_EQ(*config.find("E"), Value(std::string()));
  EXPECT_TRUE(parse_config("").value().empty());
  EXPECT_FALSE(parse_config("BM").is_ok());
  EXPECT_FALSE(parse_config("=3").is_ok());
  EXPECT_FALSE(parse_config("A=1,A=2").is_ok());
}

TEST(Config, JsonRoundTrip) {
  const Config config = parse_config("A=1,B=2.5,C=True,D=x").value();
  EXPECT_EQ(config_from_json(Json::parse(to_json(config).dump()).value()).value(), config);
  EXPECT_FALSE(config_from_json(Json(3)).is_ok());
  const Json bad = Json::object({{"A", Json::array()}});
  EXPECT_EQ(config_from_json(bad).status().message().rfind("A: ", 0), 0u);
}

TEST(ProblemShape, ParsesPositiveExtents) {
  const ProblemShape shape = parse_shape("M=4096, N=1").value();
  EXPECT_EQ(shape.text(), "M=4096,N=1");
  EXPECT_EQ(shape_from_json(to_json(shape)).value(), shape);
  for (const char* bad :
       {"M", "M=0", "M=-4", "M=4k", "M=", "M=1,M=2", "M=1.5", "M=99999999999999999999"})
    EXPECT_FALSE(parse_shape(bad).is_ok()) << bad;
  EXPECT_FALSE(shape_from_json(Json::object({{"M", 0}})).is_ok());
}

}  // namespace
}  // namespace purlin
