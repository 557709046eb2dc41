// SPDX-License-Identifier: Apache-2.0
// The texts of the command line as data: one Page a verb, one Option an option or argument.
//
// A verb's Flags and Command fill its Page. --help, the man pages, the reference and the shell
// completions are functions of it, so that every text is written once. Plain values; no failure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purlin::cli {

// A value that an option takes, with a short text ("" = the value explains itself).
struct Choice {
  std::string value, text;
};

// What an option or argument is for. `brief` fits one line of --help and has no final full stop.
// `more` adds whole sentences for the man page and the reference.
struct OptionText {
  OptionText(const char* brief_text, std::string more_text = "", std::vector<Choice> values = {})
      : brief(brief_text), more(std::move(more_text)), choices(std::move(values)) {}
  OptionText(std::string brief_text) : brief(std::move(brief_text)) {}
  std::string brief, more;
  std::vector<Choice> choices;
};

struct Option {
  std::string short_name, long_name;  // "-o", "--output"; both "" for an argument
  std::string value;                  // "FILE"; "" for a flag
  std::string default_value;          // "" = none
  std::string brief, more;
  std::vector<Choice> choices;
  bool optional_value = false;  // --stalls[=CYCLES]
  bool repeated = false;
  bool required = false;  // of an argument
};

struct Example {
  std::string command;
  std::string purpose = "";  // "" = the command explains itself
};

struct ExitCode {
  int code;
  std::string meaning;  // no final full stop
};

// The texts of a verb next to its options. A paragraph ends with an empty line. Lines that begin
// with two blanks keep their form.
struct VerbText {
  std::string description;  // shown by --help, too
  std::string more = "";    // for the man page and the reference
  std::vector<Example> examples = {};
  std::vector<ExitCode> exit_codes = {};
  std::vector<std::string> see = {};  // documents: "docs/guide/report.md"
};

struct Page {
  std::string name;     // "cache ls"
  std::string program;  // "purlin cache ls"
  std::string summary;  // one line, no final full stop
  std::vector<Option> arguments, options, common;
  bool takes_command = false;  // after `--`
  bool command_required = false;
  VerbText text;
};

// Verbs with one first word: "cache", "guard".
struct Group {
  std::string name, summary;
};

// A default that the user or a project can set.
struct SettingText {
  std::string name, variable, text;
};

struct Manual {
  std::string version;
  std::vector<Page> pages;  // in the order of `purlin --help`
  std::vector<Group> groups;
  std::vector<SettingText> settings;
};

// The name with its value: "-o, --output FILE", "--stalls[=CYCLES]", "FILE...".
std::string option_head(const Option& option);
// `brief` with the default where that is not in it.
std::string option_brief(const Option& option);
// "purlin report [OPTIONS] FILE..."
std::string usage_line(const Page& page);

// A part of a description: a paragraph on one line, or lines that keep their form.
struct TextBlock {
  bool verbatim = false;
  std::vector<std::string> lines;
};
std::vector<TextBlock> text_blocks(std::string_view text);
// `text` in lines of at most `width` columns; a longer word keeps its line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// What a shell completes as the value of an option or argument.
enum class ValueKind { kNone, kFile, kDirectory, kChoices };
ValueKind value_kind(const Option& option);
// The values to offer, for kChoices.
std::vector<Choice> offered_values(const Option& option);
// "cache" of "cache ls"; "" for a verb of one word.
std::string_view group_of(const Page& page);

}  // namespace purlin::cli
