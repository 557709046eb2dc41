// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(Text, SplitTrimJoin) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
}

TEST(Text, NumbersMustBeTheWholeText) {
  EXPECT_EQ(parse_int("-42"), -42);
  for (const char* bad : {"", "4x", " 4", "+4", "4.0", "9223372036854775808"})
    EXPECT_FALSE(parse_int(bad).has_value()) << bad;
  EXPECT_EQ(parse_double("1e3"), 1000);
  EXPECT_FALSE(parse_double("1e3x").has_value());
  EXPECT_EQ(parse_duration_s("250ms"), 0.25);
  EXPECT_EQ(parse_duration_s("2m"), 120);
  EXPECT_EQ(parse_duration_s("1.5h"), 5400);
  EXPECT_EQ(parse_duration_s("2d"), 172800);
  for (const char* bad : {"10", "s", "10 s", "1.2.3s", "10w", "-1s"})
    EXPECT_FALSE(parse_duration_s(bad).has_value()) << bad;
}

TEST(Text, FiguresForPeople) {
  EXPECT_EQ(format_ns(12), "12 ns");
  EXPECT_EQ(format_ns(999.6), "1.00 us");
  EXPECT_EQ(format_ns(1'234'567), "1.235 ms");
  EXPECT_EQ(format_ns(2.5e9), "2.500 s");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(1024.0 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1'234'567), "1.23 M");
  EXPECT_EQ(format_count(999'999), "1.00 M");
}

TEST(Text, ElisionKeepsCharactersWhole) {
  EXPECT_EQ(elide_middle("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(elide_middle("abcdefgh", 5), "a...h");
  EXPECT_EQ(elide_middle("abcdefgh", 2), "ab");
  EXPECT_EQ(elide_middle("äöüßäöüß", 8), "äöüßäöüß");
  EXPECT_EQ(elide_middle("äöüßäöüß", 6), "äö...ß");
  EXPECT_EQ(elide_middle("äöü", 1), "ä");
}

TEST(Text, NearestSuggestsOnlyWhatIsClose) {
  const std::vector<std::string> words = {"values", "default", "step"};
  EXPECT_EQ(nearest("defalt", words), "default");
  EXPECT_EQ(nearest("vaules", words), "values");
  EXPECT_EQ(nearest("banana", words), "");
  EXPECT_EQ(nearest("x", words), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'x'), words), "");
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

TEST(Text, DemanglesOnlyWhatIsMangled) {
  EXPECT_EQ(demangle("_Z5saxpyifPKf"), "saxpy(int, float, float const*)");
  EXPECT_EQ(demangle("saxpy"), "saxpy");
  EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
  EXPECT_EQ(demangle("_ZN2ck4normIDF16bDF16_fEEvPT_PT0_"),
            "void ck::norm<__bf16, _Float16, float>(__bf16*, _Float16*)");
}

TEST(Text, CountsCarryTheirNounInTheRightNumber) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(std::size_t{2}, "step"), "2 steps");
  EXPECT_EQ(counted(0, "launch"), "0 launches");
  EXPECT_EQ(counted(1.0, "launch"), "1 launch");
  EXPECT_EQ(counted(1234567.0, "launch"), "1.23 M launches");
  EXPECT_EQ(counted(2, "copy"), "2 copies");
  EXPECT_EQ(counted(3, "process"), "3 processes");
  EXPECT_EQ(counted(2, "array"), "2 arrays");
  EXPECT_EQ(noun_for(1, "process"), "process");
  EXPECT_EQ(noun_for(2, "index"), "indexes");
}

}  // namespace
}  // namespace purlin
