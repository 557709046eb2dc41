// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(Csv, CellsAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(csv_cell("gemm M=1"), "gemm M=1");
  EXPECT_EQ(csv_cell("f<int, 2>"), "\"f<int, 2>\"");
  EXPECT_EQ(csv_cell("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(csv_cell("a\nb"), "\"a\nb\"");
}

TEST(Csv, NoTextIsAFormula) {
  EXPECT_EQ(csv_text("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
  EXPECT_EQ(csv_text("@SUM"), "'@SUM");
  EXPECT_EQ(csv_text("  =1+1"), "'  =1+1");
  EXPECT_EQ(csv_text("\xEF\xBC\x9D"
                     "1+1"),
            "'\xEF\xBC\x9D"
            "1+1")
      << "a full-width sign";
  EXPECT_EQ(csv_text(" "), " ");
  EXPECT_EQ(csv_text("-O3"), "'-O3");
  EXPECT_EQ(csv_text("+a"), "'+a");
  EXPECT_EQ(csv_text("-1.5e3"), "-1.5e3");
  EXPECT_EQ(csv_text("gemm"), "gemm");
  EXPECT_EQ(csv_text(""), "");
}

TEST(Csv, WhatIsWrittenIsRead) {
  const std::vector<std::string> cells = {"a", "", "f<int, 2>", "say \"a\"", "\"", ","};
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + csv_cell(cell);
  EXPECT_EQ(csv_cells(line), cells);
  EXPECT_EQ(csv_cells(line + "\r"), cells);
  EXPECT_EQ(csv_cells(""), std::vector<std::string>{""});
  EXPECT_EQ(csv_cells("a,"), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(csv_cells("\"never closed, so"), std::vector<std::string>{"never closed, so"});
}

}  // namespace
}  // namespace purlin
