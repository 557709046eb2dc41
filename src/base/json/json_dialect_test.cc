// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_dialect.h"

#include "base/json/json.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(JsonDialect, NonFiniteNumbersBecomeNullOutsideOfTexts) {
  EXPECT_EQ(without_non_finite(R"({"NaN": NaN, "a\"NaN": [Infinity,-Infinity, -1, "-Infinity"]})"),
            R"({"NaN": null, "a\"NaN": [null,null, -1, "-Infinity"]})");
  EXPECT_EQ(without_non_finite(R"({"a": "N)"), R"({"a": "N)");
  EXPECT_EQ(without_non_finite(R"(["\)"), R"(["\)");
  EXPECT_EQ(without_non_finite(""), "");
  EXPECT_EQ(without_non_finite("[1, 2]"), "[1, 2]");
}

TEST(JsonDialect, AnOpenDocumentEndsBehindItsLastCompleteValue) {
  EXPECT_EQ(closed_json(R"({"cache": {"1": {"t": [1, 2]},)", 2),
            R"({"cache": {"1": {"t": [1, 2]}}})");
  EXPECT_EQ(closed_json(R"({"cache": {"1": {"t": 1}, "2": {"t": [3], "u)", 2),
            R"({"cache": {"1": {"t": 1}}})");
  EXPECT_EQ(closed_json(R"({"results": [{"t": "}"}, {"t)", 2), R"({"results": [{"t": "}"}]})");
  for (const char* whole_or_wrong : {"", "{}", R"({"a": {"b": {}}})", R"({"a": {"b": {]})", "]",
                                     R"({"a": {"b": 1)", R"({"a": "{{{{}}}")"})
    EXPECT_EQ(closed_json(whole_or_wrong, 2), "") << whole_or_wrong;
}

TEST(JsonDialect, EveryCutOfADocumentIsReadOrEmpty) {
  const std::string whole = R"({"a": [1], "cache": {"1": {"t": [1, 2]}, "2": {"t": "x\"y"}}})";
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const std::string closed = closed_json(std::string_view(whole).substr(0, cut), 2);
    if (!closed.empty()) {
      EXPECT_TRUE(Json::parse(closed).is_ok()) << cut << ": " << closed;
    }
  }
}

}  // namespace
}  // namespace purlin
