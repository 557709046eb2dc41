// SPDX-License-Identifier: Apache-2.0
#include "cli/help/reference.h"

#include "base/status.h"
#include "base/text.h"
#include "cli/help/variables.h"

#include <algorithm>

namespace purlin::cli {
namespace {

constexpr std::size_t kReferenceColumns = 100;

// Characters that Markdown would take for markup outside of code.
std::string markdown(std::string_view text) {
  std::string escaped;
  bool code = false;
  for (const char c : text) {
    if (c == '`') code = !code;
    if (!code && (c == '*' || c == '_' || c == '<' || c == '>' || c == '[' || c == ']' || c == '|'))
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// A paragraph, or an item of a list with its continuation lines.
void add_wrapped(std::string& out, std::string_view text, std::string_view first = "",
                 std::string_view next = "") {
  std::string_view lead = first;
  for (const std::string& line : wrap(text, kReferenceColumns - next.size())) {
    out += fmt::format("{}{}\n", lead, line);
    lead = next;
  }
}

void add_markdown_blocks(std::string& out, std::string_view description) {
  for (const TextBlock& block : text_blocks(description)) {
    if (!block.verbatim) {
      add_wrapped(out, markdown(block.lines.front()));
    } else {
      out += "```\n";
      for (const std::string& line : block.lines) out += line.substr(2) + "\n";
      out += "```\n";
    }
    out += "\n";
  }
}

void add_markdown_options(std::string& out, std::string_view title,
                          const std::vector<Option>& options) {
  if (options.empty()) return;
  out += fmt::format("{}:\n\n", title);
  for (const Option& option : options) {
    std::string text =
        fmt::format("`{}`: {}.", option_head(option), markdown(option_brief(option)));
    if (!option.more.empty()) text += " " + markdown(option.more);
    add_wrapped(out, text, "- ", "  ");
    for (const Choice& choice : option.choices)
      if (!choice.text.empty())
        add_wrapped(out, fmt::format("`{}`: {}.", choice.value, markdown(choice.text)), "  - ",
                    "    ");
  }
  out += "\n";
}

std::string document_link(std::string_view document) {
  std::string_view path = document;
  if (starts_with(path, "docs/")) path.remove_prefix(5);
  return fmt::format("[{}](../{})", path, path);
}

void add_page(std::string& out, const Page& page) {
  out += fmt::format("## {}\n\n{}.\n\n```\n{}\n```\n\n", page.program, markdown(page.summary),
                     usage_line(page));
  add_markdown_blocks(out, page.text.description);
  add_markdown_blocks(out, page.text.more);
  add_markdown_options(out, "Arguments", page.arguments);
  add_markdown_options(out, "Options", page.options);
  if (!page.text.examples.empty()) {
    out += page.text.examples.size() == 1 ? "Example:\n\n```sh\n" : "Examples:\n\n```sh\n";
    for (const Example& example : page.text.examples) {
      if (!example.purpose.empty()) out += fmt::format("# {}\n", example.purpose);
      out += example.command + "\n";
    }
    out += "```\n\n";
  }
  if (!page.text.exit_codes.empty()) {
    out += "Exit codes:\n\n";
    for (const ExitCode& code : page.text.exit_codes)
      add_wrapped(out, fmt::format("**{}**: {}.", code.code, markdown(code.meaning)), "- ", "  ");
    out += "\n";
  }
  if (page.text.see.empty()) return;
  std::vector<std::string> links;
  for (const std::string& document : page.text.see) links.push_back(document_link(document));
  out += "More: ";
  for (std::size_t i = 0; i < links.size(); ++i)
    out += links[i] + (i + 1 < links.size() ? ",\n" : ".\n\n");
}

}  // namespace

std::string reference(const Manual& manual) {
  std::string out =
      "# Command line\n\n"
      "`scripts/make_cli_reference.sh` generates this page from the texts of `purlin VERB "
      "--help`.\n"
      "A test fails when the two differ. The man pages hold the same text.\n\n"
      "Data goes to stdout, everything else to stderr. `--json` prints exactly one document.\n"
      "`NO_COLOR` turns colours off.\n\n"
      "| exit code | meaning |\n|---|---|\n"
      "| 0 | done or pass |\n"
      "| 1 | regression (guard), or a winner that fails (cache verify) |\n"
      "| 2 | usage or tool error |\n"
      "| 3 | inconclusive, or no baseline |\n\n"
      "`profile` returns the exit code of the command.\n\n";
  add_markdown_options(out, "Options of every verb", manual.pages.front().common);
  out +=
      "Variables that set the default of the option of their name (`purlin config`; all variables\n"
      "are in [environment.md](environment.md)):\n\n";
  for (const SettingText& setting : manual.settings)
    add_wrapped(out, fmt::format("`{}`: {}.", setting.variable, markdown(setting.text)), "- ",
                "  ");
  out += "\n";
  for (const Page& page : manual.pages) add_page(out, page);
  while (out.size() > 1 && out[out.size() - 2] == '\n') out.pop_back();
  return out;
}

std::string environment_reference(const Manual& manual) {
  std::string out =
      "# Environment variables\n\n"
      "`scripts/make_cli_reference.sh` generates this page. A test fails when the two differ, and\n"
      "`scripts/check_names` when the code reads a variable that is not here.\n"
      "`purlin config` prints each variable with its value on your machine.\n\n"
      "## Settings\n\n"
      "Each sets the default of every option of its name. An option on the command line wins. A "
      "key\n"
      "of that name in `purlin.toml` is weaker.\n\n"
      "| variable | option | meaning |\n|---|---|---|\n";
  for (const SettingText& setting : manual.settings)
    out += fmt::format("| `{}` | `--{}` | {} |\n", setting.variable, setting.name,
                       markdown(setting.text));
  for (const VariableGroup& group : variable_groups()) {
    out += fmt::format("\n## {}\n\n", group.title);
    if (!group.text.empty()) {
      add_wrapped(out, group.text);
      out += "\n";
    }
    out += "| variable | meaning |\n|---|---|\n";
    for (const Variable& variable : group.variables)
      out += fmt::format("| `{}` | {} |\n", variable.name, markdown(variable.text));
  }
  return out;
}

}  // namespace purlin::cli
