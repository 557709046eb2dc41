// SPDX-License-Identifier: Apache-2.0
#include "base/output/escaped.h"

#include "base/csv.h"
#include "base/evil_names_testing.h"
#include "base/output/markup.h"
#include "base/output/terminal.h"
#include "base/text.h"
#include "base/utf8.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

bool has_control(std::string_view text, std::string_view but) {
  while (!text.empty()) {
    const Utf8 next = first_utf8(text);
    const bool control = next.point < 0x20 || (next.point >= 0x7f && next.point < 0xa0) ||
                         (next.point >= 0x202a && next.point <= 0x202e);
    if (!next.valid || (control && but.find(text.front()) == std::string_view::npos)) return true;
    text.remove_prefix(next.bytes);
  }
  return false;
}

bool has_command(const std::string& text) {
  for (const std::string& line : split(text, '\n'))
    if (starts_with(trim(line), "::") || line.find("##[") != std::string::npos) return true;
  return false;
}

TEST(Escaped, NothingThatATerminalOrARunnerObeysIsShown) {
  for (const std::string& name : evil_names()) {
    for (const bool colors : {false, true}) {
      const std::string text = shown_text(name + "\n" + name, colors);
      EXPECT_FALSE(has_control(text, colors ? "\n\t\x1b" : "\n\t")) << text;
      EXPECT_EQ(text.find("\x1b["), colors && name.find("\x1b[31m") != std::string::npos
                                        ? text.find("\x1b[31m")
                                        : std::string::npos);
      EXPECT_FALSE(has_command(text)) << text;
    }
    Table table;
    table.column("name");
    table.row({name});
    const std::string cell = shown_text(table.render({false, false, true, 40}), false);
    EXPECT_FALSE(has_control(cell, "\n")) << cell;
    EXPECT_FALSE(has_command(cell)) << cell;
    EXPECT_EQ(split(cell, '\n').size(), 3u) << "a row is one line: " << cell;
  }
  EXPECT_EQ(shown_text("a\r\nb", false), "a\\u000d\nb");
  EXPECT_EQ(shown_data("a,b\r\nc\rd\r\n"), "a,b\r\nc\\u000dd\r\n");
  EXPECT_EQ(shown_text("gemm<float> µs\t1\n", false), "gemm<float> µs\t1\n");
  EXPECT_EQ(shown_text("\x1b[31mred\x1b[0m", true), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(shown_text("\x1b[31mred\x1b[0m", false), "\\u001b[31mred\\u001b[0m");
  EXPECT_EQ(shown_text("a::b ##", false), "a::b ##");
}

// Of what Markdown or HTML gives a meaning to, only our own <code> and numeric references are left.
TEST(Escaped, MarkdownShowsANameAndDoesNothingElse) {
  for (const std::string& name : evil_names())
    for (std::string text : {markdown_text(name), markdown_code(name)}) {
      EXPECT_FALSE(has_control(text, "")) << text;
      for (const std::string_view own : {"<code>", "</code>"})
        for (std::size_t at; (at = text.find(own)) != std::string::npos;)
          text.erase(at, own.size());
      for (std::size_t at; (at = text.find("&#")) != std::string::npos;)
        text.erase(at, text.find(';', at) + 1 - at);
      EXPECT_EQ(text.find_first_of("<>&[]!|`*_~\\@#{}\n"), std::string::npos) << text;
      EXPECT_EQ(text.find("://"), std::string::npos) << text;
    }
  EXPECT_EQ(markdown_code("gemm<float>"), "<code>gemm&#60;float&#62;</code>");
  EXPECT_EQ(markdown_code("gemm M=1"), "gemm M=1");
  EXPECT_EQ(markdown_code(""), "");
  EXPECT_EQ(markdown_text("1.5 times, see (a)"), "1.5 times, see (a)");
}

TEST(Escaped, AWorkflowCommandIsOneLineWithOneMessage) {
  for (const std::string& name : evil_names()) {
    const std::string property = workflow_property(name), message = workflow_message(name);
    EXPECT_FALSE(has_control(property + message, "")) << message;
    EXPECT_EQ(property.find_first_of(":,"), std::string::npos) << property;
  }
  EXPECT_EQ(workflow_message("a%\nb:c"), "a%25%0Ab:c");
  EXPECT_EQ(workflow_property("a,b:c"), "a%2Cb%3Ac");
}

TEST(Escaped, CsvAndMarkupAreStrict) {
  for (const std::string& name : evil_names()) {
    const std::string cell = csv_text(name), markup = markup_escaped(name);
    EXPECT_FALSE(has_control(cell, "")) << cell;
    EXPECT_EQ(csv_cells(cell).size(), 1u) << cell;
    EXPECT_EQ(std::string_view("=+-@").find(csv_cells(cell)[0].front()), std::string::npos) << cell;
    EXPECT_FALSE(has_control(markup, "\t")) << markup;
    EXPECT_EQ(markup.find_first_of("<>\""), std::string::npos) << markup;
  }
}

}  // namespace
}  // namespace purlin
