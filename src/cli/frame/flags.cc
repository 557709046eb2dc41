// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/flags.h"

#include "base/output/terminal.h"
#include "base/text.h"
#include "cli/frame/settings.h"
#include "cli/help/text.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace purlin::cli {

struct Flags::Impl {
  explicit Impl(std::string_view verb_name, std::string_view summary)
      : program(verb_name.substr(0, 7) == "purlin-" ? std::string(verb_name)
                                                    : "purlin " + std::string(verb_name)),
        app("", program) {
    app.set_help_flag("-h,--help");
    app.allow_extras();
    page.name = verb_name;
    page.program = program;
    page.summary = summary;
    add_to(page.common, "-h,--help", "Show this help and exit", "");
  }
  static Option& add_to(std::vector<Option>& list, const std::string& names, const OptionText& text,
                        const std::string& value_name);
  Option& add(const std::string& names, const OptionText& text, const std::string& value_name) {
    return add_to(common ? page.common : page.options, names, text, value_name);
  }
  void add_argument(const std::string& name, const OptionText& text, bool required, bool repeated);

  std::string program;  // "purlin tune", or a separate program: "purlin-sample"
  CLI::App app;
  Page page;
  bool common = false;  // the options declared now are those of every verb
  // The problem that CLI11 found, in the words of the rest of Purlin.
  std::string explain(const CLI::ParseError& problem) const;
  // The setting for an option, by its long name.
  std::optional<std::string> preset(const std::string& names) const {
    const std::size_t dashes = names.rfind("--");
    if (settings == nullptr || dashes == std::string::npos) return std::nullopt;
    return settings->find(names.substr(dashes + 2));
  }
  const Settings* settings = nullptr;
  std::vector<std::pair<std::string, std::string>> bare;  // options with an optional value
  std::string bad_setting;                                // of the wrong type, reported by parse
  std::vector<std::string>* command = nullptr;
  bool command_required = false;
};

Option& Flags::Impl::add_to(std::vector<Option>& list, const std::string& names,
                            const OptionText& text, const std::string& value_name) {
  Option option;
  for (const std::string& name : split(names, ','))
    (starts_with(name, "--") ? option.long_name : option.short_name) = name;
  option.value = value_name;
  option.brief = text.brief;
  option.more = text.more;
  option.choices = text.choices;
  return list.emplace_back(std::move(option));
}

void Flags::Impl::add_argument(const std::string& name, const OptionText& text, bool required,
                               bool repeated) {
  Option& argument = add_to(page.arguments, "", text, name);
  argument.required = required;
  argument.repeated = repeated;
}

std::string Flags::Impl::explain(const CLI::ParseError& problem) const {
  const std::string text = problem.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&problem) != nullptr) {  // "--top: …"
    const CLI::Option* option = app.get_option_no_throw(text.substr(0, text.find(':')));
    if (option == nullptr) return text;
    if (const std::size_t times = option->results().size(); times > 1)
      return fmt::format("{} is given {} times, but takes one value", option->get_name(), times);
    return fmt::format("{} needs a value: {}", option->get_name(), option->get_type_name());
  }
  if (dynamic_cast<const CLI::ConversionError*>(&problem) != nullptr) {  // "…: --top = x"
    const std::size_t name = text.find("--"), equals = text.find(" = ");
    if (name == std::string::npos || equals == std::string::npos || equals < name) return text;
    const std::string option_name = text.substr(name, equals - name);
    const CLI::Option* option = app.get_option_no_throw(option_name);
    if (option == nullptr) return text;
    return fmt::format("{} takes {}, not '{}'", option_name,
                       option->get_type_name() == "N" ? "an integer" : "a number",
                       text.substr(equals + 3));
  }
  return text;
}

Flags::Flags(std::string_view verb, std::string_view summary, const Settings* settings)
    : impl_(std::make_unique<Impl>(verb, summary)) {
  impl_->settings = settings;
}
Flags::~Flags() = default;

void Flags::option(const std::string& names, std::string& variable, const OptionText& text,
                   const std::string& value_name) {
  if (const auto preset = impl_->preset(names)) variable = *preset;
  own_option(names, variable, text, value_name);
}

void Flags::own_option(const std::string& names, std::string& variable, const OptionText& text,
                       const std::string& value_name) {
  impl_->add(names, text, value_name).default_value = variable;
  impl_->app.add_option(names, variable)->type_name(value_name);
}

void Flags::option(const std::string& names, int& variable, const OptionText& text) {
  if (const auto preset = impl_->preset(names)) {
    const std::optional<std::int64_t> number = parse_int(*preset);
    if (number && *number >= INT32_MIN && *number <= INT32_MAX) {
      variable = static_cast<int>(*number);
    } else {
      impl_->bad_setting = fmt::format(
          "the setting for {} must be an integer, not '{}'; see 'purlin config'", names, *preset);
    }
  }
  impl_->add(names, text, "N").default_value = fmt::format("{}", variable);
  impl_->app.add_option(names, variable)->type_name("N");
}

void Flags::option(const std::string& names, double& variable, const OptionText& text) {
  if (const auto preset = impl_->preset(names)) {
    if (const std::optional<double> number = parse_double(*preset)) {
      variable = *number;
    } else {
      impl_->bad_setting = fmt::format(
          "the setting for {} must be a number, not '{}'; see 'purlin config'", names, *preset);
    }
  }
  impl_->add(names, text, "X").default_value = fmt::format("{}", variable);
  impl_->app.add_option(names, variable)->type_name("X");
}

void Flags::list(const std::string& names, std::vector<std::string>& variable,
                 const OptionText& text, const std::string& value_name) {
  impl_->add(names, text, value_name).repeated = true;
  impl_->app.add_option(names, variable)->type_name(value_name)->allow_extra_args(false);
}

void Flags::flag(const std::string& names, bool& variable, const OptionText& text) {
  impl_->add(names, text, "");
  impl_->app.add_flag(names, variable);
}

void Flags::optional_value(const std::string& name, std::string& variable, const std::string& given,
                           const OptionText& text, const std::string& value_name) {
  impl_->add(name, text, value_name).optional_value = true;
  impl_->app.add_option(name, variable)->type_name("[=" + value_name + "]");
  impl_->bare.emplace_back(name, given);
}

void Flags::positional(const std::string& name, std::string& variable, const OptionText& text,
                       bool required) {
  impl_->add_argument(name, text, required, false);
  impl_->app.add_option(name, variable)->required(required)->type_name("");
}

void Flags::positionals(const std::string& name, std::vector<std::string>& variable,
                        const OptionText& text, bool required) {
  impl_->add_argument(name, text, required, true);
  impl_->app.add_option(name, variable)->required(required)->type_name("");
}

void Flags::command(std::vector<std::string>& variable, bool required) {
  impl_->command = &variable;
  impl_->command_required = required;
}

void Flags::begin_common() { impl_->common = true; }

Status Flags::parse(const std::vector<std::string>& arguments) {
  if (!impl_->bad_setting.empty()) return {Code::kInvalid, impl_->bad_setting};
  // The command after `--` is removed first: its options are not ours.
  std::vector<std::string> own = arguments;
  if (auto split = std::find(own.begin(), own.end(), "--"); split != own.end()) {
    if (impl_->command == nullptr)
      return error(Code::kInvalid, "{} takes no command after '--'", impl_->program);
    impl_->command->assign(split + 1, own.end());
    own.erase(split, own.end());
  }
  for (std::size_t i = 0; i < own.size(); ++i)
    for (const auto& [name, given] : impl_->bare)
      if (own[i] == name && (i + 1 == own.size() || starts_with(own[i + 1], "-")))
        own[i] += "=" + given;
  std::reverse(own.begin(), own.end());  // CLI11 takes its vector back to front
  try {
    impl_->app.parse(own);
  } catch (const CLI::CallForHelp&) {
    return {Code::kCancelled, ""};
  } catch (const CLI::ParseError& problem) {
    return error(Code::kInvalid, "{}; see '{} --help'", impl_->explain(problem), impl_->program);
  }
  if (const std::vector<std::string> extras = impl_->app.remaining(); !extras.empty()) {
    const std::string& extra = extras.front();
    if (!starts_with(extra, "-"))
      return error(Code::kInvalid, "unexpected argument '{}'; {}see '{} --help'", extra,
                   impl_->command ? "a command to run goes after '--'; " : "", impl_->program);
    std::vector<std::string> names;
    for (const CLI::Option* option : impl_->app.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    const std::string near = nearest(extra.substr(0, extra.find('=')), names);
    return error(Code::kInvalid, "unknown option '{}'{}; see '{} --help'", extra,
                 near.empty() ? "" : fmt::format("; did you mean '{}'?", near), impl_->program);
  }
  if (impl_->command_required && impl_->command->empty())
    return error(Code::kInvalid, "no command given; use: {} [options] -- COMMAND [ARGUMENTS]",
                 impl_->program);
  return Status::ok();
}

Page Flags::page(const VerbText& text) const {
  Page page = impl_->page;
  page.takes_command = impl_->command != nullptr;
  page.command_required = impl_->command_required;
  page.text = text;
  return page;
}

std::string Flags::help(const VerbText& text) const {
  constexpr int kLeast = 60;
  const Terminal terminal = Terminal::of(stdout);
  const auto width = static_cast<std::size_t>(std::max(terminal.width(), kLeast));
  return verb_help(page(text), terminal.bounded() ? std::min(width, kHelpColumns) : kHelpColumns);
}

}  // namespace purlin::cli
