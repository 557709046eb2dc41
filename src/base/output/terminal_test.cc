// SPDX-License-Identifier: Apache-2.0
#include "base/output/terminal.h"

#include "base/status.h"
#include "base/text.h"
#include "base/time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace purlin {
namespace {

const Terminal kPlainTerminal(false, false, false, 80);
const Terminal kRichTerminal(true, true, true, 80);

TEST(Terminal, ColoursOnlyWhereTheyShow) {
  EXPECT_EQ(kPlainTerminal.paint(Style::kRed, "x"), "x");
  EXPECT_EQ(kRichTerminal.paint(Style::kRed, "x"), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(kRichTerminal.paint(Style::kRed, ""), "");
  EXPECT_EQ(kRichTerminal.paint(Style::kPlain, "x"), "x");
}

TEST(Terminal, NoColorWinsOverForceAndTheOptionOverBoth) {
  ::setenv("CLICOLOR_FORCE", "1", 1);
  EXPECT_TRUE(Terminal::of(stdout).color());
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(Terminal::of(stdout).color());
  EXPECT_TRUE(Terminal::of(stdout, ColorMode::kAlways).color());
  ::unsetenv("CLICOLOR_FORCE");
  EXPECT_FALSE(Terminal::of(stdout, ColorMode::kNever).color());
  ::unsetenv("NO_COLOR");
}

// Sets a variable and restores it: the tests of one process share the environment.
class VariableForTest {
 public:
  VariableForTest(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name); before != nullptr) before_ = before;
    ::setenv(name, value, 1);
  }
  ~VariableForTest() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  VariableForTest(const VariableForTest&) = delete;
  VariableForTest& operator=(const VariableForTest&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Of the C library, not of the name: C.utf8 is UTF-8, and a locale that is not there is not.
TEST(Terminal, TheEncodingIsThatOfTheLocale) {
  for (const auto& [name, utf8] : {std::pair{"C.UTF-8", true},
                                   {"C.utf8", true},
                                   {"C.UTF8", true},
                                   {"C", false},
                                   {"no_PLACE.UTF-8", false}}) {
    const VariableForTest locale("LC_ALL", name);
    EXPECT_EQ(Terminal::of(stdout).utf8(), utf8) << name;
  }
}

TEST(Terminal, TheWidthFollowsColumns) {
  const VariableForTest columns("COLUMNS", "72");
  EXPECT_EQ(Terminal::of(stdout).width(), 72);
  EXPECT_TRUE(Terminal::of(stdout).bounded());
  const VariableForTest nonsense("COLUMNS", "wide");
  EXPECT_NE(Terminal::of(stdout).width(), 72);
}

TEST(Terminal, BarsAreBounded) {
  EXPECT_EQ(kPlainTerminal.bar(0.5, 4), "##");
  EXPECT_EQ(kPlainTerminal.bar(7, 4), "####");
  EXPECT_EQ(kPlainTerminal.bar(-1, 4), "");
  EXPECT_EQ(kRichTerminal.bar(0.5, 1), "▌");
  EXPECT_EQ(visible_width(kRichTerminal.bar(0.99, 10)), 10u);
}

TEST(Terminal, TablesLineUpPaintedAndUnicodeCells) {
  Table table;
  table.column("name");
  table.column("n", Table::Align::kRight);
  table.row({kRichTerminal.paint(Style::kRed, "ä"), "1"});
  table.row({"long name", "23"});
  EXPECT_EQ(table.render(kPlainTerminal, "> "),
            "> name        n\n> \x1b[31mä\x1b[0m           1\n> long name  23\n");
  EXPECT_EQ(visible_width("\x1b[31mä\x1b[0mb"), 2u);
}

Table wide_table() {
  Table table;
  table.column("kernel");
  table.column("time", Table::Align::kRight);
  table.column("cause");
  table.row({"gemm_nt_128x128", "1.234 ms", "the clock of the device changed by itself"});
  table.row({"核心", "9 us", ""});
  return table;
}

TEST(Terminal, TablesFitATerminal) {
  for (const int width : {30, 40, 60, 80}) {
    const std::string text = wide_table().render(Terminal(true, false, true, width), "  ");
    std::string words;
    for (const std::string& line : split(text, '\n')) {
      EXPECT_LE(visible_width(line), static_cast<std::size_t>(width)) << text;
      words += line;
    }
    EXPECT_NE(words.find("itself"), std::string::npos) << text;
  }
  EXPECT_EQ(wide_table().render(Terminal(true, false, true, 50)),
            "kernel               time  cause\n"
            "gemm_nt_128x128  1.234 ms  the clock of the device\n"
            "                           changed by itself\n"
            "核心                 9 us\n");
}

TEST(Terminal, NumbersWrapBeforeWordsOfTextBreak) {
  Table table;
  table.column("shape");
  table.column("verdict");
  table.column("ratio", Table::Align::kRight);
  table.column("cause");
  table.row({"N=65536", "inconclusive", "1.017x [0.979, 1.078]", "code and config"});
  EXPECT_EQ(table.render(Terminal(true, false, true, 48)),
            "shape    verdict                 ratio  cause\n"
            "N=65536  inconclusive   1.017x [0.979,  code and\n"
            "                                1.078]  config\n");
}

// In place of a column of syllables.
TEST(Terminal, ALastColumnWithLittleRoomStandsBelowItsRow) {
  Table table;
  for (const char* title : {"kernel", "device", "config", "why"}) table.column(title);
  table.row(
      {"gemm", "NVIDIA H100 80GB HBM3", "BM=128 BN=128 BK=8 TM=8 TN=8 LANES=4 PAD=0", "it won"});
  table.row({"softmax", "NVIDIA H100 80GB HBM3", "BM=64", ""});
  EXPECT_EQ(table.render(Terminal(true, false, true, 46), " "),
            " kernel   device\n"
            " gemm     NVIDIA H100 80GB HBM3\n"
            "   config  BM=128 BN=128 BK=8 TM=8 TN=8\n"
            "     LANES=4 PAD=0\n"
            "   why  it won\n"
            " softmax  NVIDIA H100 80GB HBM3\n"
            "   config  BM=64\n");
}

// A row of a file stays one line for the tools that read it.
TEST(Terminal, TablesInFilesDoNotWrap) {
  const std::string text = wide_table().render(Terminal(false, false, true, 40));
  EXPECT_NE(text.find("the clock of the device changed by itself\n"), std::string::npos);
}

TEST(Terminal, ProseFitsATerminal) {
  EXPECT_EQ(prose_line("the clock changed", Terminal(true, false, true, 16), "  "),
            "  the clock\n    changed\n");
  EXPECT_EQ(prose_line("the clock changed", Terminal(false, false, true, 16), "  "),
            "  the clock changed\n");
}

TEST(Status, CarriesCodeContextAndValue) {
  const Status bad = error(Code::kInvalid, "bad {}", 7).with_context("f:1");
  EXPECT_EQ(bad.message(), "f:1: bad 7");
  EXPECT_EQ(bad.code(), Code::kInvalid);
  EXPECT_TRUE(Status::ok().with_context("f").is_ok());
  const auto twice = [](Result<int> in) -> Result<int> {
    PURLIN_ASSIGN(const int value, in);
    return value * 2;
  };
  EXPECT_EQ(twice(4).value(), 8);
  EXPECT_EQ(twice(bad).status().message(), "f:1: bad 7");
  EXPECT_EQ(Result<int>(bad).value_or(3), 3);
  EXPECT_DEATH((void)Result<int>(bad).value(), "value of a failed result: f:1: bad 7");
}

TEST(Time, Rfc3339) {
  EXPECT_EQ(format_rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_rfc3339(1'763'642'580'999'999'999), "2025-11-20T12:43:00Z");
}

}  // namespace
}  // namespace purlin
