// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/cost_folder.h"

#include <algorithm>
#include <cstdint>
#include <dirent.h>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace purlin::profile::capture {
namespace {

// Looked at in one go: the more of them, the longer a program may wait at its end.
constexpr std::size_t kMaxListed = 1024;

// As process_sampler.cc names them, and cost_record.cc the temporary files of writers.
bool is_record(std::string_view name) {
  constexpr std::size_t kDigits = 16;
  if (name.size() < kDigits || (name.size() > kDigits && name[kDigits] != '~')) return false;
  return std::all_of(name.begin(), name.begin() + kDigits, [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
  });
}

std::vector<std::string> records_in(DIR* folder) {
  std::vector<std::string> names;
  while (const dirent* entry = names.size() < kMaxListed ? ::readdir(folder) : nullptr)
    if (is_record(entry->d_name)) names.emplace_back(entry->d_name);
  return names;
}

}  // namespace

void bound_cost_records(const std::string& path, std::size_t most) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return;
  const std::string_view added = std::string_view(path).substr(slash + 1);
  DIR* folder = ::opendir(path.substr(0, slash + 1).c_str());
  if (folder == nullptr) return;
  const std::vector<std::string> names = records_in(folder);
  if (names.size() > most) {
    std::vector<std::pair<std::int64_t, const std::string*>> by_age;
    for (const std::string& name : names) {
      struct stat there = {};
      if (name != added &&
          ::fstatat(::dirfd(folder), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0)
        by_age.emplace_back(there.st_mtime, &name);
    }
    std::sort(by_age.begin(), by_age.end());
    const std::size_t excess = names.size() - (most - most / 4);
    for (std::size_t i = 0; i < std::min(excess, by_age.size()); ++i)
      (void)::unlinkat(::dirfd(folder), by_age[i].second->c_str(), 0);
  }
  ::closedir(folder);
}

}  // namespace purlin::profile::capture
