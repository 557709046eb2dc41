// SPDX-License-Identifier: Apache-2.0
// For tests only: link, renameat2 and the sync of a folder fail on request. FileFaults also records
// the synced folders. One file of a test program includes this: its definitions take the C
// library's place there. For tests of one thread.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace purlin {

// From its construction to its destruction; one at a time.
struct FileFaults {
  FileFaults() { current() = this; }
  ~FileFaults() { current() = nullptr; }
  FileFaults(const FileFaults&) = delete;
  FileFaults& operator=(const FileFaults&) = delete;
  static FileFaults*& current() {
    static FileFaults* faults = nullptr;
    return faults;
  }
  bool synced(const std::string& folder) const {
    struct stat info {};
    return ::stat(folder.c_str(), &info) == 0 && synced_folders.count(info.st_ino) > 0;
  }

  int link = 0, rename = 0, sync_folder = 0;  // what they fail with; 0: they do not
  bool link_forgets = false;                  // link works, and says that it did not
  std::set<ino_t> synced_folders;
  int writes = 0;  // syncs of files
};

}  // namespace purlin

extern "C" {

int link(const char* from, const char* to) noexcept {
  const auto* faults = purlin::FileFaults::current();
  const int code = faults != nullptr ? faults->link : 0;
  if (code == 0 && ::linkat(AT_FDCWD, from, AT_FDCWD, to, 0) != 0) return -1;
  errno = faults != nullptr && faults->link_forgets ? EEXIST : code;
  return errno == 0 ? 0 : -1;
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  const auto* faults = purlin::FileFaults::current();
  if (faults == nullptr || faults->rename == 0)
    return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  errno = faults->rename;
  return -1;
}

int fsync(int fd) {
  if (auto* faults = purlin::FileFaults::current(); faults != nullptr) {
    struct stat info {};
    if (::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
      faults->synced_folders.insert(info.st_ino);
      errno = faults->sync_folder;
      if (errno != 0) return -1;
    } else {
      ++faults->writes;
    }
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

}  // extern "C"
