// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/flags.h"

#include "base/text.h"
#include "cli/frame/settings.h"

#include <CLI/CLI.hpp>

namespace purlin::cli {

struct Flags::Impl {
  explicit Impl(std::string_view verb_name, std::string_view summary)
      : program(verb_name.substr(0, 7) == "purlin-" ? std::string(verb_name)
                                                    : "purlin " + std::string(verb_name)),
        app(std::string(summary), program) {
    app.set_help_flag("-h,--help", "Show this help and exit");
    app.allow_extras();
  }
  std::string program;  // "purlin tune", or a program of its own: "purlin-sample"
  CLI::App app;
  // What CLI11 found wrong, said as the rest of Purlin would.
  std::string explain(const CLI::ParseError& problem) const;
  // The setting for an option, by its long name.
  std::optional<std::string> preset(const std::string& names) const {
    const std::size_t dashes = names.rfind("--");
    if (settings == nullptr || dashes == std::string::npos) return std::nullopt;
    return settings->find(names.substr(dashes + 2));
  }
  const Settings* settings = nullptr;
  std::vector<std::pair<std::string, std::string>> bare;  // options that may stand without a value
  std::string bad_setting;                                // of the wrong type, reported by parse
  std::vector<std::string>* command = nullptr;
  bool command_required = false;
};

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

void Flags::option(const std::string& names, std::string& variable, const std::string& help,
                   const std::string& value_name) {
  if (const auto preset = impl_->preset(names)) variable = *preset;
  impl_->app.add_option(names, variable, help)->type_name(value_name)->capture_default_str();
}

void Flags::option(const std::string& names, int& variable, const std::string& help) {
  if (const auto preset = impl_->preset(names)) {
    const std::optional<std::int64_t> number = parse_int(*preset);
    if (number && *number >= INT32_MIN && *number <= INT32_MAX) {
      variable = static_cast<int>(*number);
    } else {
      impl_->bad_setting = fmt::format(
          "the setting for {} must be an integer, not '{}'; see 'purlin config'", names, *preset);
    }
  }
  impl_->app.add_option(names, variable, help)->type_name("N")->capture_default_str();
}

void Flags::option(const std::string& names, double& variable, const std::string& help) {
  if (const auto preset = impl_->preset(names)) {
    if (const std::optional<double> number = parse_double(*preset)) {
      variable = *number;
    } else {
      impl_->bad_setting = fmt::format(
          "the setting for {} must be a number, not '{}'; see 'purlin config'", names, *preset);
    }
  }
  impl_->app.add_option(names, variable, help)->type_name("X")->capture_default_str();
}

void Flags::list(const std::string& names, std::vector<std::string>& variable,
                 const std::string& help, const std::string& value_name) {
  impl_->app.add_option(names, variable, help)->type_name(value_name)->allow_extra_args(false);
}

void Flags::flag(const std::string& names, bool& variable, const std::string& help) {
  impl_->app.add_flag(names, variable, help);
}

void Flags::optional_value(const std::string& name, std::string& variable, const std::string& given,
                           const std::string& help, const std::string& value_name) {
  impl_->app.add_option(name, variable, help)->type_name("[=" + value_name + "]");
  impl_->bare.emplace_back(name, given);
}

void Flags::positional(const std::string& name, std::string& variable, const std::string& help,
                       bool required) {
  impl_->app.add_option(name, variable, help)->required(required)->type_name("");
}

void Flags::positionals(const std::string& name, std::vector<std::string>& variable,
                        const std::string& help, bool required) {
  impl_->app.add_option(name, variable, help)->required(required)->type_name("");
}

void Flags::command(std::vector<std::string>& variable, bool required) {
  impl_->command = &variable;
  impl_->command_required = required;
}

Status Flags::parse(const std::vector<std::string>& arguments) {
  if (!impl_->bad_setting.empty()) return {Code::kInvalid, impl_->bad_setting};
  // The child's command line is cut off first, so that none of its options can be taken for ours.
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

std::string Flags::help(std::string_view details) const {
  std::string text = impl_->app.help();
  if (impl_->command != nullptr) {
    if (auto end = text.find('\n', text.find("Usage:")); end != std::string::npos)
      text.insert(end, " -- COMMAND [ARGUMENTS]");
  }
  if (!details.empty()) text += "\n" + std::string(details) + "\n";
  return text;
}

}  // namespace purlin::cli
