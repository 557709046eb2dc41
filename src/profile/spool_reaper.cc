// SPDX-License-Identifier: Apache-2.0
#include "profile/spool_reaper.h"

#include "base/files.h"
#include "base/os/wall_time.h"
#include "base/text.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace purlin::profile {
namespace {

constexpr std::int64_t kKeptNs = std::int64_t{24} * 3600 * 1'000'000'000;

std::int64_t changed_ns(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return 0;
  return wall_ns_of(info.st_mtim);
}

// Also of the files in it: a process that outlived its run still writes.
std::int64_t last_change_ns(const std::string& folder) {
  std::int64_t last = changed_ns(folder);
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (names.is_ok())
    for (const std::string& name : *names)
      last = std::max(last, changed_ns(join_path(folder, name)));
  return last;
}

}  // namespace

SpoolLock::SpoolLock(const std::string& folder)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
  held_ = folder_.get() >= 0 && ::flock(folder_.get(), LOCK_EX | LOCK_NB) == 0;
}

int reap_spools(const std::string& spool, std::int64_t now_ns) {
  const std::string parent = parent_path(spool);
  const Result<std::vector<std::string>> names = list_directory(parent);
  if (!names.is_ok()) return 0;
  int reaped = 0;
  for (const std::string& name : *names) {
    const std::string folder = join_path(parent, name);
    if (!starts_with(name, "purlin-spool.") || folder == spool || !is_private_directory(folder) ||
        now_ns - last_change_ns(folder) < kKeptNs)
      continue;
    const SpoolLock lock(folder);
    if (lock.held() && remove_tree(folder).is_ok()) ++reaped;
  }
  return reaped;
}

}  // namespace purlin::profile
