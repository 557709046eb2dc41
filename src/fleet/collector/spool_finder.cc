// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/spool_finder.h"

#include "base/files.h"
#include "base/text.h"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace purlin::fleet {
namespace {

constexpr std::string_view kCaptureSuffix = ".plprof", kRunFolder = "purlin-spool.";
constexpr std::size_t kMaxNamesOfFolder = 65'536;

const char* cause_of(int code) {
  if (code == EACCES || code == EPERM) return "not_permitted";
  if (code == ELOOP || code == ENOTDIR) return "link";
  return "unreadable";
}

// A folder in which every user may make files that only they can remove.
bool is_open_to_all(const struct stat& folder) {
  return (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
}

// Plain names, some of a folder that has too many.
std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = copy < 0 ? nullptr : ::fdopendir(copy);
  if (listing == nullptr) {
    if (copy >= 0) ::close(copy);
    return names;
  }
  while (const dirent* entry = ::readdir(listing)) {
    if (entry->d_name[0] == '.' || names.size() == kMaxNamesOfFolder) continue;
    names.emplace_back(entry->d_name);
  }
  ::closedir(listing);
  return names;
}

}  // namespace

std::vector<FoundCapture> SpoolFinder::look() {
  found_.clear();
  found_now_.clear();
  refused_.clear();
  folders_ = 0;
  for (const std::string& folder : options_.folders) look_in(AT_FDCWD, folder, true, 1);
  for (const std::string& folder : options_.temporary) look_in(AT_FDCWD, folder, false, 1);
  open_ = found_now_;
  return std::move(found_);
}

// The captures in a folder, and in the folders in it down to `levels`. Of the temporary folders
// only those of runs are entered.
void SpoolFinder::look_in(int parent, const std::string& path, bool watched, int levels) {
  if (++folders_ > options_.max_folders) return void(++refused_["too_many"]);
  const std::string name = parent == AT_FDCWD ? path : base_name(path);
  const Descriptor folder(
      ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.get() < 0) {
    if (errno != ENOENT) ++refused_[cause_of(errno)];
    return;
  }
  for (const std::string& entry : names_in(folder.get())) {
    if (ends_with(entry, kCaptureSuffix)) {
      if (watched || levels == 0) look_at(folder.get(), path, entry, watched);
      continue;
    }
    struct stat info {};
    if (levels == 0 || (!watched && !starts_with(entry, kRunFolder)) ||
        ::fstatat(folder.get(), entry.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(info.st_mode))
      continue;
    look_in(folder.get(), join_path(path, entry), watched, levels - 1);
  }
}

void SpoolFinder::look_at(int folder, const std::string& path, const std::string& name,
                          bool watched) {
  if (found_.size() >= options_.max_files) return void(++refused_["too_many"]);
  struct stat of_folder {
  }, info{};
  if (::fstat(folder, &of_folder) != 0 ||
      ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return;
  if (!S_ISREG(info.st_mode)) return void(++refused_["link"]);
  if (info.st_nlink != 1) return void(++refused_["several_names"]);
  if (info.st_uid != of_folder.st_uid && !is_open_to_all(of_folder))
    return void(++refused_["foreign_owner"]);
  const std::string key = fmt::format("{}/{}#{}", path, name, info.st_ino);
  std::shared_ptr<Descriptor> file;
  if (const auto known = open_.find(key); known != open_.end()) {
    file = known->second;
  } else {
    file = std::make_shared<Descriptor>(
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file->get() < 0) return void(++refused_[cause_of(errno)]);
    struct stat opened {};
    if (::fstat(file->get(), &opened) != 0 || opened.st_ino != info.st_ino ||
        opened.st_dev != info.st_dev || !S_ISREG(opened.st_mode))
      return void(++refused_["link"]);
  }
  found_now_[key] = file;
  found_.push_back(
      {key, path, name, info.st_uid, static_cast<std::uint64_t>(info.st_size), file, watched});
}

}  // namespace purlin::fleet
