// SPDX-License-Identifier: Apache-2.0
// Flags: what a verb accepts, bound to variables that the verb owns. A thin layer over CLI11, which
// only flags.cc includes.
//
// A declaration also fills the verb's Page (cli/help/page.h), the source of --help, the man pages,
// the reference and the completions. One thread.
#pragma once

#include "base/status.h"
#include "cli/help/page.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::cli {

class Settings;

class Flags {
 public:
  // `settings`, if given, supplies defaults for options of the same name; it must outlive the
  // Flags.
  Flags(std::string_view verb, std::string_view summary, const Settings* settings = nullptr);
  ~Flags();

  // `names` as in "-o,--output". The variable's value is the default. A value name such as
  // "auto|on|off" lists the values; the value kinds of cli/help/page.h follow the other names.
  void option(const std::string& names, std::string& variable, const OptionText& text,
              const std::string& value_name = "TEXT");
  void option(const std::string& names, int& variable, const OptionText& text);
  void option(const std::string& names, double& variable, const OptionText& text);
  // The same, and no setting sets it: its name means something else here.
  void own_option(const std::string& names, std::string& variable, const OptionText& text,
                  const std::string& value_name);
  void list(const std::string& names, std::vector<std::string>& variable, const OptionText& text,
            const std::string& value_name = "TEXT");  // may be repeated
  void flag(const std::string& names, bool& variable, const OptionText& text);
  // An option whose value may be left out: "--stalls" is "--stalls=GIVEN".
  void optional_value(const std::string& name, std::string& variable, const std::string& given,
                      const OptionText& text, const std::string& value_name);
  void positional(const std::string& name, std::string& variable, const OptionText& text,
                  bool required = true);
  void positionals(const std::string& name, std::vector<std::string>& variable,
                   const OptionText& text, bool required = true);
  // Everything after `--` goes to `variable`. Without this, `--` is an error.
  void command(std::vector<std::string>& variable, bool required = true);
  // The options declared from here on are those of every verb.
  void begin_common();

  // kInvalid with a suggestion of a name that is close; kCancelled for --help.
  Status parse(const std::vector<std::string>& arguments);
  Page page(const VerbText& text) const;
  std::string help(const VerbText& text = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace purlin::cli
