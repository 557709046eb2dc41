// SPDX-License-Identifier: Apache-2.0
#include "base/regex.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin {
namespace {

TEST(Regex, FindsAndSplits) {
  const Regex regex(R"((\w+)=(\d+)(;)?)");
  EXPECT_EQ(regex.groups(), 3);
  Regex::Groups groups;
  ASSERT_TRUE(regex.search("a b=12 c", &groups));
  EXPECT_EQ(groups[0], "b=12");
  EXPECT_EQ(groups[1], "b");
  EXPECT_EQ(groups[2], "12");
  EXPECT_EQ(groups[3].data(), nullptr) << "took no part";
  EXPECT_FALSE(regex.matches("a b=12"));
  EXPECT_TRUE(regex.matches("b=12;"));
  std::string all;
  regex.each("a=1 b=2;c=3", [&](const Regex::Groups& one) { all += std::string(one[1]) + "."; });
  EXPECT_EQ(all, "a.b.c.");
  int empty = 0;
  Regex("x*").each("ab", [&](const Regex::Groups&) { ++empty; });
  EXPECT_EQ(empty, 3);
}

TEST(Regex, IsLinearInTheText) {
  // A backtracking matcher takes 2^50000 steps, or overflows its stack.
  const std::string text(50'000, 'a');
  EXPECT_FALSE(Regex("(a+)+b").search(text));
  EXPECT_FALSE(Regex("(a|a)*(a|a)*c").matches(text));
  EXPECT_TRUE(Regex("(a|b)*").matches(text));
}

TEST(Regex, RefusesWhatItCannotDo) {
  for (const char* bad : {"(", "a{2", "[", R"((a)\1)", "(?!a)", "(?=a)", "(?<=a)", "*"}) {
    const auto compiled = Regex::compile(bad);
    if (std::string_view(bad) == "a{2") {
      EXPECT_TRUE(compiled.is_ok()) << "braces are letters where they are no count";
      continue;
    }
    EXPECT_EQ(compiled.status().code(), Code::kInvalid) << bad;
    EXPECT_FALSE(compiled.status().message().empty());
  }
}

TEST(Regex, PosixSyntaxIsTheCommonPart) {
  const Regex::Options posix = {.ignore_case = false, .syntax = Regex::Syntax::kPosix};
  for (const char* shared : {"gemm", "^gemm_[0-9]+$", "a|b", "(gemm|conv).*f16", "[[:alnum:]]+"})
    EXPECT_TRUE(Regex::compile(shared, posix).is_ok()) << shared;
  for (const char* other : {R"(\d)", R"(\bgemm)", "(?i)gemm", R"(\w+)"})
    EXPECT_FALSE(Regex::compile(other, posix).is_ok()) << other;
}

TEST(Regex, IgnoresCaseOnRequest) {
  const auto regex = Regex::compile("GEMM", {.ignore_case = true});
  EXPECT_TRUE(regex->search("my_gemm"));
  EXPECT_FALSE(Regex("GEMM").search("my_gemm"));
}

TEST(Regex, OtherBytesThanUtf8AreNoTrouble) {
  EXPECT_TRUE(
      Regex("a").search("\xff\xfe"
                        "a"));
  EXPECT_EQ(Regex::compile("\xff").status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace purlin
