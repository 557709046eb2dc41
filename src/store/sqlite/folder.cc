// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/folder.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::store {
namespace {

constexpr std::string_view kEnding = ".sqlite";
constexpr const char* kLevelFolders[] = {"hours", "days", "months"};
}  // namespace

std::string Folder::catalog() const { return join_path(root_, "catalog.sqlite"); }

std::string Folder::level_folder(Level level) const {
  return join_path(root_, kLevelFolders[static_cast<std::size_t>(level)]);
}

std::string Folder::path(Level level, std::int64_t ns) const {
  return join_path(level_folder(level), period_name(level, ns) + std::string(kEnding));
}

bool Folder::has(Level level, std::int64_t ns) const { return file_exists(path(level, ns)); }

Result<std::vector<std::int64_t>> Folder::periods(Level level) const {
  std::vector<std::int64_t> begins;
  if (!is_directory(level_folder(level))) return begins;
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(level_folder(level)));
  for (const std::string& name : names) {
    if (!ends_with(name, kEnding)) continue;
    const auto begin =
        period_begin(level, std::string_view(name).substr(0, name.size() - kEnding.size()));
    if (begin) begins.push_back(*begin);
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

}  // namespace purlin::store
