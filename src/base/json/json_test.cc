// SPDX-License-Identifier: Apache-2.0
#include "base/json/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin {
namespace {

TEST(Json, WritesAndReadsBackTheSame) {
  const Json value = Json::object({{"int", INT64_MAX},
                                   {"real", 0.1},
                                   {"whole", 2.0},
                                   {"text", "a\"b\\c\n\x01\u00e9"},
                                   {"list", Json::array({1, nullptr, true})},
                                   {"deep", Json::object({{"x", Json::array()}})}});
  for (const int indent : {-1, 2}) EXPECT_EQ(Json::parse(value.dump(indent)).value(), value);
  EXPECT_EQ(value.dump().find("2.0") != std::string::npos, true);
  EXPECT_TRUE(Json::parse("2.0")->is_number());
  EXPECT_FALSE(Json::parse("2.0")->is_int());
}

TEST(Json, KeepsOrderAndTheLastOfARepeatedKey) {
  Json value = Json::parse(R"({"b": 1, "a": 2, "b": 3})").value();
  EXPECT_EQ(value["b"].as_int(), 3);
  value.set("b", 4);
  EXPECT_EQ(value["b"].as_int(), 4);
  EXPECT_EQ(Json::object({{"z", 1}, {"a", 2}}).dump(), R"({"z":1,"a":2})");
}

TEST(Json, WhatIsNotUtf8OrFiniteBecomesValid) {
  EXPECT_EQ(json_quote("a\xFF\xC3z"), "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\"");
  EXPECT_EQ(json_quote("\xED\xA0\x80").find('\xED'), std::string::npos);  // a lone surrogate
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(INFINITY).dump(), "null");
}

TEST(Json, LenientAndStrictReads) {
  const Json value = Json::parse(R"({"n": 3, "r": 3.0, "h": 3.5, "s": "x"})").value();
  EXPECT_EQ(value["r"].as_int(), 3);
  EXPECT_EQ(value["h"].as_int(7), 7);
  EXPECT_EQ(value["n"].as_double(), 3.0);
  EXPECT_EQ(value["missing"]["deeper"].as_string(), "");
  EXPECT_EQ(value.string_at("n").status().message(), "'n' must be a string");
  EXPECT_EQ(value.int_at("n").value(), 3);
  EXPECT_FALSE(value.int_at("r").is_ok());
  EXPECT_EQ(value.double_at("n").value(), 3);
}

TEST(Json, MalformedTextNamesThePlace) {
  EXPECT_NE(Json::parse("{\n  \"a\": }").status().message().find("line 2, column 8"),
            std::string::npos);
  for (const char* bad : {"", "{", "[1,]", "nul", "01", "\"\xFF\"", "1 2", "{\"a\" 1}", "1e999"})
    EXPECT_FALSE(Json::parse(bad).is_ok()) << bad;
}

TEST(Json, DepthAndSizeAreBounded) {
  const std::string deep = std::string(1'000'000, '[');
  EXPECT_NE(Json::parse(deep).status().message().find("nested deeper than 200"), std::string::npos);
  Json::Limits limits;
  limits.max_bytes = 10;
  EXPECT_FALSE(Json::parse("[1,2,3,4,5,6]", limits).is_ok());
}

}  // namespace
}  // namespace purlin
