// SPDX-License-Identifier: Apache-2.0
#include "model/expression/parameter.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

Status checked(std::string_view json) {
  return check_parameters(config_from_json(Json::parse(json).value()).value());
}

TEST(Parameter, WhatSurvivesAsOneCompilerOptionIsTaken) {
  for (const char* good :
       {R"({"BM": 64, "UNROLL": true, "ALPHA": -0.5, "_x9": 9223372036854775807})",
        R"({"TYPE": "float4", "OP": "std::array<float,4>", "signature": "tn_8_8*", "e": ""})"})
    EXPECT_TRUE(checked(good).is_ok()) << good << checked(good).message();
}

TEST(Parameter, WhatBecomesOtherOptionsIsRefused) {
  for (const char* bad :
       {R"({"BM": "64 -DEVIL=1"})", R"({"L": "a'b;c"})", R"({"L": "a\tb"})", R"({"L": "a\u0000b"})",
        R"({"L": "\"a\""})", R"({"L": "$HOME"})", R"({"L": "a\\"})", R"({"B M": 64})",
        R"({"1X": 2})", R"({"": 3})", R"({"A-B": 1})", R"({"A=1 -DB": 1})"})
    EXPECT_EQ(checked(bad).code(), Code::kInvalid) << bad;
}

TEST(Parameter, IntegersBeyond64BitsAreRefused) {
  for (const char* bad :
       {R"({"BM": 1180591620717411303424})", R"({"X": 9223372036854775808})", R"({"X": -1e300})"}) {
    EXPECT_EQ(checked(bad).code(), Code::kInvalid) << bad;
    EXPECT_NE(checked(bad).message().find("64 bits"), std::string::npos);
  }
}

}  // namespace
}  // namespace purlin
