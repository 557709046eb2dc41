// SPDX-License-Identifier: Apache-2.0
// A view reads what Json reads, and takes nothing that Json refuses.
#include "base/json/json_view.h"

#include "base/json/json.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin {
namespace {

void expect_same(const Json& json, const JsonView& view) {
  EXPECT_EQ(json.is_null(), view.is_null());
  EXPECT_EQ(json.is_bool(), view.is_bool());
  EXPECT_EQ(json.is_int(), view.is_int());
  EXPECT_EQ(json.is_number(), view.is_number());
  EXPECT_EQ(json.is_string(), view.is_string());
  EXPECT_EQ(json.is_array(), view.is_array());
  EXPECT_EQ(json.is_object(), view.is_object());
  EXPECT_EQ(json.as_bool(true), view.as_bool(true));
  EXPECT_EQ(json.as_int(7), view.as_int(7));
  EXPECT_EQ(json.as_double(7), view.as_double(7));
  EXPECT_EQ(json.as_string(), view.as_string());
  EXPECT_EQ(json.size(), view.size());
  ASSERT_EQ(json.items().size(), view.items().size());
  ASSERT_EQ(json.members().size(), view.members().size());
  auto item = json.items().begin();
  for (const JsonView each : view.items()) expect_same(*item++, each);
  auto member = json.members().begin();
  for (const JsonView::Member each : view.members()) {
    EXPECT_EQ(member->key, each.key);
    expect_same(member->value, each.value);
    expect_same(json[member->key], view[member->key]);  // of a repeated key the last
    ++member;
  }
}

const std::string kDocument =
    R"( {"int": 123456789012345678, "low": -17, "zero": 0, "real": 0.1, "whole": 2.0,)"
    R"( "tiny": 1e-05, "large": -1.5E+20, "text": "BM=64 ~!", "none": null, "yes": true, "no":)"
    R"( false, "list": [1, [], [2.5, "x"], {}], "deep": {"a": {"b": [3]}, "a": {"c": 4}},)"
    "\t\r\n \"\" : \"\" } ";

TEST(JsonView, ReadsWhatJsonReads) {
  JsonScan scan;
  for (const std::string& text :
       {kDocument, std::string("7"), std::string("[]"), std::string(" \"a\" ")}) {
    ASSERT_TRUE(scan.scan(text)) << text;
    expect_same(*Json::parse(text), scan.root());
  }
  EXPECT_TRUE(JsonView().is_null());
  EXPECT_TRUE(scan.root()["a"]["b"].is_null());
  ASSERT_TRUE(scan.scan(kDocument));
  EXPECT_EQ(scan.root()["deep"].text(), R"({"a": {"b": [3]}, "a": {"c": 4}})");
  EXPECT_FALSE(scan.root().find("missing"));
}

TEST(JsonView, TellsWhatIsDenseAndHoldsObjects) {
  JsonScan scan;
  ASSERT_TRUE(scan.scan(R"({"a":[1,[2,"x y"]],"b": [ 1],"c":[1,[{}]],"d":[],"e":[1 ]} )"));
  const JsonView root = scan.root();
  EXPECT_TRUE(root["a"].is_dense() && root["c"].is_dense() && root["d"].is_dense());
  EXPECT_FALSE(root.is_dense() || root["b"].is_dense() || root["e"].is_dense());
  EXPECT_TRUE(root.holds_objects() && root["c"].holds_objects());
  EXPECT_FALSE(root["a"].holds_objects() || root["d"].holds_objects());
}

TEST(JsonView, LeavesToJsonWhatIsNotPlain) {
  JsonScan scan;
  for (const char* text : {R"("a\n")", "\"\xC3\xA9\"", "\"\x7F\"", "1234567890123456789", "-0",
                           "1e100", "1e-100", "-0000000000000000001"})
    EXPECT_FALSE(scan.scan(text)) << text;
  EXPECT_FALSE(scan.scan(std::string(40, '[') + std::string(40, ']')));
  EXPECT_FALSE(scan.scan("0." + std::string(100, '1')));
}

TEST(JsonView, TakesNothingThatJsonRefuses) {
  JsonScan scan;
  for (const char* bad : {"",           " ",        "{",
                          "[1,]",       "[,1]",     "[1 2]",
                          "nul",        "truex",    "01",
                          "-",          "+1",       "1.",
                          ".5",         "1e",       "1e+",
                          "\"a",        "\"a\tb\"", "1 2",
                          "{\"a\" 1}",  "{\"a\":}", "{a:1}",
                          "{\"a\":1,}", "]",        "}",
                          "{\"a\":1]",  "[1}",      "\xEF\xBB\xBF[]x"})
    EXPECT_FALSE(scan.scan(bad)) << bad;
  // A damaged document that JsonScan accepts has the values that Json::parse reads.
  const std::string alphabet = "{}[]\",:0123456789.eE+-tfn \\ax\x01\xC3";
  Random random(5);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = kDocument;
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes)
      text[random.below(text.size())] = alphabet[random.below(alphabet.size())];
    if (random.below(8) == 0) text.resize(random.below(text.size()));
    if (!scan.scan(text)) continue;
    ++taken;
    const Result<Json> json = Json::parse(text);
    ASSERT_TRUE(json.is_ok()) << text;
    expect_same(*json, scan.root());
    ASSERT_FALSE(HasFailure()) << text;
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace purlin
