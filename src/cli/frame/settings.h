// SPDX-License-Identifier: Apache-2.0
// Settings: defaults for flags that a user or a project sets once. Immutable after loading.
//
// Precedence: a flag on the command line, PURLIN_NAME in the environment, purlin.toml of the
// project (the nearest one upwards from the working directory), purlin.toml of the user's
// configuration folder, the built-in default. `purlin config` shows each value with its origin. A
// project file that another user could have written is refused.
#pragma once

#include "base/status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::cli {

struct Setting {
  std::string name;      // "device": sets the default of every verb's --device
  std::string variable;  // "PURLIN_DEVICE"
  std::string value;     // "" = not set: the verb's own default
  std::string origin;    // "default", "environment PURLIN_DEVICE", "/path/purlin.toml:3:1"
  std::string help;
};

class Settings {
 public:
  // kInvalid names the file, line and column, or the variable.
  static Result<Settings> load(const std::string& working_directory,
                               const std::string& user_directory);
  // Every setting, without values.
  static std::vector<Setting> known();
  const std::vector<Setting>& all() const { return settings_; }
  // The value for a flag of that name; nullopt without one.
  std::optional<std::string> find(std::string_view name) const;

 private:
  Status apply_file(const std::string& path);
  std::vector<Setting> settings_;
};

}  // namespace purlin::cli
