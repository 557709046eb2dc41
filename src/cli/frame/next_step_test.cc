// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/next_step.h"

#include <gtest/gtest.h>

namespace purlin::cli {
namespace {

TEST(NextStep, WordsAreThoseOfAShell) {
  EXPECT_EQ(next_step({"purlin", "advise", "run.plprof"}), "next: purlin advise run.plprof\n");
  EXPECT_EQ(next_step({"purlin", "advise", "a b"}), "next: purlin advise 'a b'\n");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a\x1b[2J"), "'a?[2J'");
}

}  // namespace
}  // namespace purlin::cli
