// SPDX-License-Identifier: Apache-2.0
// Flags: what a verb accepts, bound to variables the verb owns. A thin layer over CLI11, which is
// included by flags.cc alone.
#pragma once

#include "base/status.h"

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

  // `names` as in "-o,--output". The variable's value is the default.
  void option(const std::string& names, std::string& variable, const std::string& help,
              const std::string& value_name = "TEXT");
  void option(const std::string& names, int& variable, const std::string& help);
  void option(const std::string& names, double& variable, const std::string& help);
  void list(const std::string& names, std::vector<std::string>& variable, const std::string& help,
            const std::string& value_name = "TEXT");  // may be repeated
  void flag(const std::string& names, bool& variable, const std::string& help);
  // An option whose value may be left out: "--stalls" is "--stalls=GIVEN".
  void optional_value(const std::string& name, std::string& variable, const std::string& given,
                      const std::string& help, const std::string& value_name);
  void positional(const std::string& name, std::string& variable, const std::string& help,
                  bool required = true);
  void positionals(const std::string& name, std::vector<std::string>& variable,
                   const std::string& help, bool required = true);
  // Everything after `--` goes to `variable`. Without this, `--` is an error.
  void command(std::vector<std::string>& variable, bool required = true);

  // kInvalid with a suggestion for what is close; kCancelled with the text when help was asked for.
  Status parse(const std::vector<std::string>& arguments);
  std::string help(std::string_view details) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace purlin::cli
