// SPDX-License-Identifier: Apache-2.0
#include "base/os/folder_space.h"

#include "base/files.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <sys/statvfs.h>
#include <unistd.h>

namespace purlin {

FolderSpace examine_folder(const std::string& path) {
  FolderSpace space;
  struct statvfs facts {};
  if (!file_exists(path)) {
    space.problem = "it does not exist";
  } else if (!is_directory(path)) {
    space.problem = "it is no folder";
  } else if (::access(path.c_str(), W_OK | X_OK) != 0) {
    space.problem = fmt::format("it is not writable: {}", std::strerror(errno));
  } else if (::statvfs(path.c_str(), &facts) != 0) {
    space.problem = fmt::format("its file system does not answer: {}", std::strerror(errno));
  } else {
    space.free_bytes = static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
    // File systems without a fixed number of files report none.
    if (facts.f_files > 0 && facts.f_favail == 0)
      space.problem = "its file system holds no more files";
  }
  return space;
}

FolderSpace examine_future_folder(const std::string& path) {
  std::string existing = absolute_path(path);
  while (!file_exists(existing) && existing != "/" && !existing.empty())
    existing = parent_path(existing);
  FolderSpace space = examine_folder(existing);
  if (!space.problem.empty() && existing != absolute_path(path))
    space.problem = fmt::format("{}: {}", existing, space.problem);
  return space;
}

}  // namespace purlin
