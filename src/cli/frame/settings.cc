// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/settings.h"

#include "base/files.h"
#include "base/toml.h"

#include <sys/stat.h>
#include <unistd.h>

namespace purlin::cli {
namespace {

// The nearest purlin.toml upwards, or "".
std::string find_project_file(std::string directory) {
  while (true) {
    const std::string candidate = join_path(directory, "purlin.toml");
    if (file_exists(candidate)) return candidate;
    const std::string parent = parent_path(directory);
    if (parent == directory || directory == "." || directory.empty()) return "";
    directory = parent;
  }
}

// A project file decides the commands and the place of results. A file of another user is refused.
Status check_trusted(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return error(Code::kIo, "cannot read '{}'", path);
  const bool ours = info.st_uid == ::getuid() || info.st_uid == 0;
  if (!ours || (info.st_mode & S_IWOTH) != 0)
    return error(Code::kInvalid, "'{}' is {}; make it yours (chown, chmod o-w) or remove it", path,
                 ours ? "writable by everyone" : "owned by another user");
  return Status::ok();
}

}  // namespace

std::vector<Setting> Settings::known() {
  return {
      {"device", "PURLIN_DEVICE", "", "default", "Device to use: cuda:0, opencl:0, … or auto"},
      {"cache", "PURLIN_CACHE", "", "default", "Directory of the config cache"},
      {"cache-layers", "PURLIN_CACHE_LAYERS", "", "default", "Caches below it: DIR:DIR"},
      {"color", "PURLIN_COLOR", "", "default", "Colour: auto, always or never"},
      {"jobs", "PURLIN_JOBS", "", "default", "Parallel compile workers of tune"},
      {"strategy", "PURLIN_STRATEGY", "", "default", "Search strategy of tune"},
      {"build", "PURLIN_BUILD_LABEL", "", "default",
       "Label of the code under test, stored in profiles"},
      {"target-compute", "PURLIN_TARGET_COMPUTE", "", "default",
       "Reachable share of the compute roof, 0.78"},
      {"target-memory", "PURLIN_TARGET_MEMORY", "", "default",
       "Reachable share of the bandwidth roof, 0.92"},
  };
}

Status Settings::apply_file(const std::string& path) {
  PURLIN_TRY(check_trusted(path));
  PURLIN_ASSIGN(const Toml document, Toml::load(path));
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(document, "purlin.toml"));
  for (Setting& setting : settings_) {
    const Toml* found = table.optional(setting.name);
    if (found == nullptr) continue;
    if (found->integer() != nullptr) {
      setting.value = std::to_string(*found->integer());
    } else {
      PURLIN_ASSIGN(setting.value, table.string(setting.name));
    }
    // A relative cache belongs to the folder of the file, not to the working directory.
    if (setting.name == "cache") setting.value = join_path(parent_path(path), setting.value);
    setting.origin = found->where();
  }
  return table.finish();
}

Result<Settings> Settings::load(const std::string& working_directory,
                                const std::string& user_directory) {
  Settings result;
  result.settings_ = known();
  const std::string user_file = join_path(user_directory, "purlin.toml");
  if (file_exists(user_file)) PURLIN_TRY(result.apply_file(user_file));
  const std::string project_file = find_project_file(absolute_path(working_directory));
  if (!project_file.empty() && project_file != user_file)
    PURLIN_TRY(result.apply_file(project_file));
  for (Setting& setting : result.settings_) {
    const std::string value = environment_variable(setting.variable.c_str());
    if (value.empty()) continue;
    setting.value = value;
    setting.origin = "environment " + setting.variable;
  }
  return result;
}

std::optional<std::string> Settings::find(std::string_view name) const {
  for (const Setting& setting : settings_)
    if (setting.name == name && !setting.value.empty()) return setting.value;
  return std::nullopt;
}

}  // namespace purlin::cli
