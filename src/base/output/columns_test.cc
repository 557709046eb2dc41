// SPDX-License-Identifier: Apache-2.0
#include "base/output/columns.h"

#include "base/text.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

using Lines = std::vector<std::string>;

TEST(Columns, WideCharactersTakeTwoAndCombiningOnesNone) {
  EXPECT_EQ(visible_width("核心"), 4u);
  EXPECT_EQ(visible_width("e\xCC\x81"), 1u);  // e and a combining accent
  EXPECT_EQ(visible_width("ä"), 1u);
  EXPECT_EQ(visible_width("\x1b[31m核\x1b[0mb"), 3u);
  EXPECT_EQ(visible_width("\xFF\xE6\xA0"), 3u);  // no UTF-8
  EXPECT_EQ(bytes_within("核心", 3), 3u);
}

TEST(Columns, ElidedTextFitsInColumns) {
  EXPECT_EQ(visible_width(elide_middle("核心核心核心", 8)), 7u);
  EXPECT_EQ(elide_middle("核心核心", 8), "核心核心");
  EXPECT_EQ(elide_middle("abcdefgh", 5), "a...h");
}

TEST(Columns, WrappingLosesNothing) {
  EXPECT_EQ(wrap_columns("one two three", 8), (Lines{"one two", "three"}));
  EXPECT_EQ(wrap_columns("M=64,N=128,K=32", 11), (Lines{"M=64,N=128,", "K=32"}));
  EXPECT_EQ(wrap_columns("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(wrap_columns("", 3), (Lines{""}));
  EXPECT_EQ(wrap_columns("核心核", 3), (Lines{"核", "心", "核"}));
  EXPECT_EQ(wrap_columns("\x1b[31mab cd\x1b[0m", 2),
            (Lines{"\x1b[31mab\x1b[0m", "\x1b[31mcd\x1b[0m"}));
}

}  // namespace
}  // namespace purlin
