// SPDX-License-Identifier: Apache-2.0
#include "cli/help/text.h"

#include "base/status.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::cli {
namespace {

constexpr std::size_t kWidestHead = 34;  // a longer one has its text on the next line

// Options without a short name stand under the long names of the others.
std::string help_head(const Option& option) {
  const bool indent = option.short_name.empty() && !option.long_name.empty();
  return fmt::format("  {}{}", indent ? "    " : "", option_head(option));
}

void add_options(std::string& text, std::string_view title, const std::vector<Option>& options,
                 std::size_t column, std::size_t columns) {
  if (options.empty()) return;
  text += fmt::format("\n{}:\n", title);
  for (const Option& option : options) {
    std::string line = fmt::format("{:<{}}", help_head(option), column);
    if (line.size() > column) {
      text += line + "\n";
      line.assign(column, ' ');
    }
    const std::vector<std::string> lines = wrap(option_brief(option), columns - column);
    for (std::size_t i = 0; i < lines.size(); ++i)
      text += (i == 0 ? line : std::string(column, ' ')) + lines[i] + "\n";
  }
}

void add_blocks(std::string& text, std::string_view description, std::size_t columns) {
  for (const TextBlock& block : text_blocks(description)) {
    if (!block.verbatim) text += "\n";
    for (const std::string& line : block.lines) {
      if (block.verbatim)
        text += line + "\n";
      else
        for (const std::string& part : wrap(line, columns)) text += part + "\n";
    }
  }
}

void add_examples(std::string& text, const std::vector<Example>& examples) {
  if (examples.empty()) return;
  text += examples.size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const Example& example : examples) {
    if (!example.purpose.empty()) text += fmt::format("  # {}\n", example.purpose);
    text += fmt::format("  {}\n", example.command);
  }
}

}  // namespace

std::string verb_help(const Page& page, std::size_t columns) {
  std::string text = fmt::format("{}\n\nUsage: {}\n", page.summary, usage_line(page));
  add_blocks(text, page.text.description, columns);
  std::size_t column = 0;
  for (const auto* list : {&page.arguments, &page.options, &page.common})
    for (const Option& option : *list)
      if (const std::size_t width = help_head(option).size(); width <= kWidestHead)
        column = std::max(column, width);
  column += 2;
  add_options(text, "Arguments", page.arguments, column, columns);
  add_options(text, "Options", page.options, column, columns);
  add_options(text, "Common options", page.common, column, columns);
  add_examples(text, page.text.examples);
  if (!page.text.exit_codes.empty()) {
    text += "\nExit codes:\n";
    constexpr std::size_t kMeaning = 5;  // its column
    for (const ExitCode& code : page.text.exit_codes) {
      std::string head = fmt::format("  {}  ", code.code);
      for (const std::string& line : wrap(code.meaning, columns - kMeaning)) {
        text += head + line + "\n";
        head.assign(kMeaning, ' ');
      }
    }
  }
  if (!starts_with(page.program, "purlin ")) return text;  // a program without a man page
  std::string more = "man " + page.program;
  std::replace(more.begin() + 4, more.end(), ' ', '-');
  for (const std::string& document : page.text.see) more += ", " + document;
  return text + fmt::format("\nMore: {}\n", more);
}

std::string overview_help(const Manual& manual, std::string_view group) {
  std::vector<const Page*> pages;
  std::size_t width = 0;
  for (const Page& page : manual.pages) {
    if (!group.empty() && group_of(page) != group) continue;
    pages.push_back(&page);
    width = std::max(width, page.name.size());
  }
  if (pages.empty()) return "";
  std::string summary = "purlin: finds slow GPU kernels and makes them fast for good";
  for (const Group& one : manual.groups)
    if (one.name == group) summary = one.summary;
  std::string text = fmt::format("{}\n\nUsage: purlin {} [OPTIONS] [-- COMMAND]\n\nVerbs:\n",
                                 summary, group.empty() ? "VERB" : fmt::format("{} VERB", group));
  for (const Page* page : pages)
    text += fmt::format("  {:<{}}  {}\n", page->name, width, page->summary);
  text +=
      "\nOptions of every verb: --help, --color auto|always|never, --quiet, --verbose\n"
      "`purlin help VERB` explains one verb. `purlin version` prints the version.\n"
      "Exit codes: 0 done or pass, 1 regression (guard), 2 usage or tool error, 3 inconclusive.\n";
  return text;
}

}  // namespace purlin::cli
