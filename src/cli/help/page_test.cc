// SPDX-License-Identifier: Apache-2.0
#include "cli/help/page.h"

#include "base/text.h"
#include "cli/frame/command.h"
#include "cli/help/completion.h"
#include "cli/help/man.h"
#include "cli/help/text.h"

#include <gtest/gtest.h>

#include <set>

namespace purlin::cli {
namespace {

TEST(HelpPage, HeadsOfOptions) {
  Option option;
  option.short_name = "-o";
  option.long_name = "--output";
  option.value = "FILE";
  EXPECT_EQ(option_head(option), "-o, --output FILE");
  EXPECT_EQ(value_kind(option), ValueKind::kFile);
  option.value = "auto|on|1/N";
  option.short_name = "";
  option.optional_value = true;
  EXPECT_EQ(option_head(option), "--output[=auto|on|1/N]");
  ASSERT_EQ(offered_values(option).size(), 2u);  // a pattern such as 1/N is no value
  EXPECT_EQ(offered_values(option)[1].value, "on");
  option.brief = "The text";
  option.default_value = "on";
  EXPECT_EQ(option_brief(option), "The text (default: on)");
  option.brief = "The text (default: the suite's)";
  EXPECT_EQ(option_brief(option), option.brief);
}

TEST(HelpPage, TextIsWrappedAndTablesKeepTheirForm) {
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("… … …", 3), (std::vector<std::string>{"… …", "…"}));
  EXPECT_EQ(wrap("longer-than-that", 5), (std::vector<std::string>{"longer-than-that"}));
  const std::vector<TextBlock> blocks = text_blocks("First\nline:\n  a  1\n  b  2\n\nLast");
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].lines, (std::vector<std::string>{"First line:"}));
  EXPECT_TRUE(blocks[1].verbatim);
  EXPECT_EQ(blocks[1].lines, (std::vector<std::string>{"  a  1", "  b  2"}));
  EXPECT_EQ(blocks[2].lines, (std::vector<std::string>{"Last"}));
}

TEST(HelpPage, EveryVerbHasItsTexts) {
  const Manual all = manual();
  std::set<std::string> names;
  for (const Page& page : all.pages) {
    EXPECT_TRUE(names.insert(page.name).second) << page.name;
    EXPECT_FALSE(page.text.description.empty()) << page.name;
    EXPECT_FALSE(page.text.examples.empty()) << page.name;
    EXPECT_GE(page.text.exit_codes.size(), 2u) << page.name;
    for (const auto* list : {&page.arguments, &page.options, &page.common})
      for (const Option& option : *list) {
        EXPECT_FALSE(option.brief.empty()) << page.name << ' ' << option_head(option);
        EXPECT_FALSE(option.brief.ends_with('.')) << page.name << ' ' << option_head(option);
        EXPECT_TRUE(option.more.empty() || option.more.ends_with('.'))
            << page.name << ' ' << option_head(option);
      }
  }
  EXPECT_EQ(man_pages(all).size(), all.pages.size() + all.groups.size() + 1);
}

// Of a narrow terminal: all but commands, which are copied, and the list of pages.
TEST(HelpPage, FitsANarrowTerminal) {
  const Manual all = manual();
  for (const Page& page : all.pages)
    for (const std::string& line : split(verb_help(page, 80), '\n')) {
      const bool copied = line.find("purlin ") != std::string::npos || starts_with(line, "More:");
      EXPECT_TRUE(copied || line.size() <= 80) << page.name << ": " << line;
    }
}

TEST(HelpPage, GroupsListTheirVerbs) {
  const Manual all = manual();
  EXPECT_EQ(overview_help(all, "cahce"), "");
  EXPECT_NE(overview_help(all, "cache").find("cache pull"), std::string::npos);
  EXPECT_EQ(overview_help(all, "cache").find("doctor"), std::string::npos);
  EXPECT_EQ(second_words(all, "guard").size(), 7u);
}

TEST(HelpPage, QuotesOfTheShell) { EXPECT_EQ(shell_quoted("a'b"), "'a'\\''b'"); }

}  // namespace
}  // namespace purlin::cli
