// SPDX-License-Identifier: Apache-2.0
#include "base/toml.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(Toml, ValuesKnowTheirPlaceAndOrder) {
  const Toml root = Toml::parse("z = 1\na = [true, 2.5]\n[t]\n  s = \"x\"\n", "f.toml").value();
  ASSERT_EQ(root.table()->size(), 3u);
  EXPECT_EQ((*root.table())[0].first, "z");
  const Toml* text = root.find("t")->find("s");
  EXPECT_EQ(*text->string(), "x");
  EXPECT_EQ(text->where(), "f.toml:4:7");
  EXPECT_EQ(*(*root.find("a")->array())[1].real(), 2.5);
  EXPECT_EQ(root.find("a")->integer(), nullptr);
  EXPECT_EQ(text->complain("no").message(), "f.toml:4:7: no");
}

TEST(Toml, MistakesNameFileLineAndColumn) {
  for (const char* bad : {"a = ", "a = 1\na = 2", "[x", "[^[x]]", "a = \"",
                          "a = 99999999999999999999", "= 1", "a.b = 1\na = 2", "\x80", "a = 1e"}) {
    const auto parsed = Toml::parse(bad, "f.toml");
    ASSERT_FALSE(parsed.is_ok()) << bad;
    EXPECT_EQ(parsed.status().message().rfind("f.toml:", 0), 0u) << parsed.status().message();
  }
}

TEST(Toml, BeyondAsciiOnlyInStringsAndComments) {
  EXPECT_EQ(Toml::parse("a = 1\nb = \"ö\"\n  ö = 1", "f").status().message(),
            "f:3:3: a character beyond ASCII outside of a string; put it in quotes");
  for (const char* good :
       {"a = 'ö' # ö", "\"ö\" = 1", "a = \"\"\"ö\n\\\"ö\"\"\" # ö", "a = '''ö''''", "a = \"\\\"ö\"",
        "\xEF\xBB\xBF"
        "a = 1",
        "a = \"\"\"\"\" ö \"\"\"\"\"", "a = \"\" # ö", "a = '\\' # ö"})
    EXPECT_TRUE(Toml::parse(good, "f").is_ok())
        << good << ": " << Toml::parse(good, "f").status().message();
}

// Found by the fuzzer: what looks like a string's text is none, and toml++ comes to it.
TEST(Toml, AQuoteInTheMidstOfAWordOpensNoString) {
  for (const char* bad : {"-=2aa\x01'A[\xD1\xBE\xC2\x99"
                          "A",
                          "-=272=.'\xEF\xBB\xAA'", "a = 2aa'A[Ѿ", "a = 'b'\"ö\"",
                          "--=2t[F[0=\"\"-=2t[F[0=\"\"\"\"\xEF\xBA\xBF\"\"\xEF\xBB\xBF#"})
    EXPECT_FALSE(Toml::parse(bad, "f").is_ok()) << bad;
}

TEST(TomlTable, ReadsTypedAndReportsTheRest) {
  const Toml root =
      Toml::parse("name = \"x\"\nn = 3\non = true\nlist = [\"a\", 7]\nextr = 1", "f").value();
  TomlTable table = TomlTable::of(root, "[top]").value();
  EXPECT_EQ(table.string("name").value(), "x");
  EXPECT_EQ(table.integer_or("n", 0).value(), 3);
  EXPECT_EQ(table.number_or("n", 0).value(), 3.0);
  EXPECT_TRUE(table.boolean_or("on", false).value());
  EXPECT_EQ(table.string_or("absent", "d").value(), "d");
  EXPECT_EQ(table.strings_or_empty("list").value(), (std::vector<std::string>{"a", "7"}));
  EXPECT_EQ(table.integer_or("name", 0).status().message(),
            "f:1:8: 'name' must be an integer, not a string");
  EXPECT_EQ(table.string("extra").status().message(),
            "f:1:1: [top] needs 'extra'; is 'extr' meant to be it?");
  EXPECT_EQ(table.finish().message(), "f:5:8: [top] has no key 'extr'; did you mean 'extra'?");
  EXPECT_FALSE(TomlTable::of(*root.find("n"), "[n]").is_ok());
}

}  // namespace
}  // namespace purlin
