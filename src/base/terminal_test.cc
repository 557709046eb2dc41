// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include "base/status.h"
#include "base/time.h"

#include <gtest/gtest.h>

#include <cstdlib>

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
