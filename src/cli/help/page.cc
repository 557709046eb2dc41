// SPDX-License-Identifier: Apache-2.0
#include "cli/help/page.h"

#include "base/status.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::cli {
namespace {

// Columns of UTF-8 text, for the characters that the texts use.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string option_head(const Option& option) {
  if (option.long_name.empty() && option.short_name.empty())
    return option.value + (option.repeated ? "..." : "");
  std::string head = option.short_name;
  if (!option.long_name.empty()) head += (head.empty() ? "" : ", ") + option.long_name;
  if (option.value.empty()) return head;
  return option.optional_value ? fmt::format("{}[={}]", head, option.value)
                               : fmt::format("{} {}", head, option.value);
}

std::string option_brief(const Option& option) {
  if (option.default_value.empty() || option.brief.find("(default") != std::string::npos)
    return option.brief;
  return fmt::format("{} (default: {})", option.brief, option.default_value);
}

std::string usage_line(const Page& page) {
  std::string line = page.program + " [OPTIONS]";
  for (const Option& argument : page.arguments) {
    const std::string head = option_head(argument);
    line += argument.required ? " " + head : fmt::format(" [{}]", head);
  }
  if (page.takes_command)
    line += page.command_required ? " -- COMMAND [ARGUMENTS]" : " [-- COMMAND [ARGUMENTS]]";
  return line;
}

std::vector<TextBlock> text_blocks(std::string_view text) {
  std::vector<TextBlock> blocks;
  bool open = false;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) {
      open = false;
      continue;
    }
    const bool verbatim = starts_with(line, "  ");
    if (!open || blocks.back().verbatim != verbatim) blocks.push_back({verbatim, {}});
    std::vector<std::string>& lines = blocks.back().lines;
    if (verbatim || lines.empty())
      lines.push_back(line);
    else
      lines.back() += " " + line;
    open = true;
  }
  return blocks;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    if (!line.empty() && columns(line) + 1 + columns(word) > width) {
      lines.push_back(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

ValueKind value_kind(const Option& option) {
  if (!offered_values(option).empty()) return ValueKind::kChoices;
  if (is_one_of(option.value, {"DIR", "DIR:DIR", "TARGET"})) return ValueKind::kDirectory;
  if (is_one_of(option.value, {"FILE", "PATH", "SPEC", "SUITE", "MATRIX", "OTHER", "A", "B"}))
    return ValueKind::kFile;
  return ValueKind::kNone;
}

std::vector<Choice> offered_values(const Option& option) {
  if (!option.choices.empty()) return option.choices;
  if (option.value == "DEVICE") return {{"auto", ""}, {"cuda:0", ""}, {"opencl:0", ""}};
  std::vector<Choice> values;
  if (option.value.find('|') == std::string::npos) return values;
  for (const std::string& value : split(option.value, '|'))
    if (!value.empty() && std::islower(static_cast<unsigned char>(value.front())) != 0)
      values.push_back({value, ""});
  return values;
}

std::string_view group_of(const Page& page) {
  const std::string_view name = page.name;
  const std::size_t blank = name.find(' ');
  return blank == std::string_view::npos ? "" : name.substr(0, blank);
}

}  // namespace purlin::cli
