// SPDX-License-Identifier: Apache-2.0
// For tests only: calls on files fail on request, and a power cut is simulated. One file of the
// test program includes base/file_fault_calls_testing.h, too. For tests of one thread.
//
// FileFaults counts the calls and makes one of them fail. DroppingDisk keeps a copy of what was
// synced below a folder, so that a test sees what a power cut would leave at each sync.
#pragma once

#include <cerrno>
#include <cstdarg>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <sys/mman.h>
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
  // Whether the call that now begins must fail, with errno set.
  bool strikes(std::string_view call) {
    if (calls == die_at) ::_exit(kDied);
    if (at_each_call) at_each_call();
    const bool now = calls++ == fail_at;
    const bool signal = interrupt && calls % 2 == 0 && (call == "read" || call == "write");
    if (now) struck = call;
    if (now || signal) errno = now ? fail_with : EINTR;
    return now || signal;
  }

  int link = 0, rename = 0, sync_folder = 0;  // what they fail with; 0: they do not
  bool link_forgets = false;                  // link works, and says that it did not
  std::set<ino_t> synced_folders;
  int writes = 0;  // syncs of files
  // Of open, read, write, pread, pwrite, fsync, fdatasync, ftruncate, rename, link, unlink, mkdir,
  // mmap and readdir: how many there were, and which one fails with what.
  int calls = 0, fail_at = -1, fail_with = EIO;
  std::string struck;  // the call that failed
  static constexpr int kDied = 99;
  int die_at = -1;                     // the process ends at this call, with this exit status
  std::function<void()> at_each_call;  // pauses, say
  bool interrupt = false;              // every other read and write is interrupted before it begins
  bool short_writes = false;           // a write takes at most 7 bytes
};

// What is durable below `root`: contents of files as of their last sync, names as of the last sync
// of their folder. What is there at the construction is durable. One at a time.
class DroppingDisk {
 public:
  explicit DroppingDisk(std::string root) : root_(std::move(root)) {
    keep_all(root_);
    current() = this;
  }
  ~DroppingDisk() {
    current() = nullptr;
    for (const auto& [inode, file] : files_) ::close(file.fd);
    for (const auto& [inode, folder] : folders_) ::close(folder.fd);
  }
  DroppingDisk(const DroppingDisk&) = delete;
  DroppingDisk& operator=(const DroppingDisk&) = delete;
  static DroppingDisk*& current() {
    static DroppingDisk* disk = nullptr;
    return disk;
  }

  // Called before each sync and each rename, and after it. What it does itself is not watched.
  std::function<void()> at_each_point;

  // What a power cut at this moment would leave, written to the new folder `to`. `kept` decides of
  // each folder and file that was changed since its sync whether the change arrived all the same.
  void cut_power(const std::string& to, const std::function<bool()>& kept = {}) {
    const Quiet quiet(*this);
    restore(root_, to, kept);
  }

  void synced(int fd) {
    const Quiet quiet(*this);
    struct stat info {};
    if (::fstat(fd, &info) != 0) return;
    char path[4096];
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
    if (size <= 0 ||
        std::string_view(path, static_cast<std::size_t>(size)).substr(0, root_.size()) != root_)
      return;
    if (S_ISDIR(info.st_mode))
      keep_folder(std::string(path, static_cast<std::size_t>(size)), info.st_ino);
    else
      keep_file(link, info.st_ino);
  }
  void point() {
    if (quiet_ > 0 || !at_each_point) return;
    const Quiet quiet(*this);
    at_each_point();
  }
  bool is_quiet() const { return quiet_ > 0; }

 private:
  // An inode that is held open is not given out again.
  struct File {
    int fd = -1;
    std::string contents;
  };
  struct Folder {
    int fd = -1;
    std::map<std::string, ino_t> names;
  };
  struct Quiet {
    explicit Quiet(DroppingDisk& of) : disk(of) { ++disk.quiet_; }
    ~Quiet() { --disk.quiet_; }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
    DroppingDisk& disk;
  };

  static std::string contents_of(const std::string& path) {
    std::string contents;
    const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY, 0));
    char buffer[1 << 16];
    for (ssize_t got; fd >= 0 && (got = ::syscall(SYS_read, fd, buffer, sizeof buffer)) > 0;)
      contents.append(buffer, static_cast<std::size_t>(got));
    if (fd >= 0) ::close(fd);
    return contents;
  }
  static int hold(const std::string& path) {
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_PATH | O_CLOEXEC, 0));
  }
  void keep_file(const std::string& path, ino_t inode) {
    File& file = files_[inode];
    if (file.fd < 0) file.fd = hold(path);
    file.contents = contents_of(path);
  }
  static std::map<std::string, ino_t> names_in(const std::string& path) {
    std::map<std::string, ino_t> names;
    for (const auto& item : std::filesystem::directory_iterator(path)) {
      struct stat info {};
      if (::lstat(item.path().c_str(), &info) == 0)
        names[item.path().filename().string()] = info.st_ino;
    }
    return names;
  }
  void keep_folder(const std::string& path, ino_t inode) {
    Folder& folder = folders_[inode];
    if (folder.fd < 0) folder.fd = hold(path);
    folder.names = names_in(path);
    // Those that were never synced must keep their inodes as well.
    for (const auto& [name, child] : folder.names) {
      struct stat info {};
      const std::string at = path + "/" + name;
      if (::lstat(at.c_str(), &info) != 0) continue;
      if (S_ISREG(info.st_mode) && files_[child].fd < 0) files_[child].fd = hold(at);
      if (S_ISDIR(info.st_mode) && folders_[child].fd < 0) folders_[child].fd = hold(at);
    }
  }
  void keep_all(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return;
    keep_folder(path, info.st_ino);
    for (const auto& item : std::filesystem::directory_iterator(path)) {
      if (item.is_directory()) {
        keep_all(item.path().string());
      } else if (struct stat child{}; ::lstat(item.path().c_str(), &child) == 0) {
        keep_file(item.path().string(), child.st_ino);
      }
    }
  }
  void restore(const std::string& from, const std::string& to, const std::function<bool()>& kept) {
    struct stat info {};
    ::mkdir(to.c_str(), 0700);
    if (::stat(from.c_str(), &info) != 0) return;
    restore_folder(info.st_ino, from, to, kept);
  }
  void restore_folder(ino_t inode, const std::string& from, const std::string& to,
                      const std::function<bool()>& kept) {
    ::mkdir(to.c_str(), 0700);
    std::map<std::string, ino_t> names = folders_[inode].names;
    if (kept && kept()) {
      struct stat now {};
      if (::stat(from.c_str(), &now) == 0 && now.st_ino == inode) names = names_in(from);
    }
    for (const auto& [name, child] : names) {
      struct stat now {};
      const std::string at = from + "/" + name;
      const bool same = ::lstat(at.c_str(), &now) == 0 && now.st_ino == child;
      if (folders_.count(child) > 0 || (same && S_ISDIR(now.st_mode))) {
        restore_folder(child, at, to + "/" + name, kept);
        continue;
      }
      const auto file = files_.find(child);
      std::string contents = file == files_.end() ? "" : file->second.contents;
      if (kept && same && kept()) contents = contents_of(at);
      const int fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, (to + "/" + name).c_str(),
                                                O_WRONLY | O_CREAT | O_TRUNC, 0600));
      (void)!::syscall(SYS_write, fd, contents.data(), contents.size());
      ::close(fd);
    }
  }

  const std::string root_;
  std::map<ino_t, File> files_;
  std::map<ino_t, Folder> folders_;
  int quiet_ = 0;
};

namespace file_faults {

inline bool strikes(std::string_view call) {
  const DroppingDisk* disk = DroppingDisk::current();
  if (disk != nullptr && disk->is_quiet()) return false;
  FileFaults* faults = FileFaults::current();
  return faults != nullptr && faults->strikes(call);
}
inline void point() {
  if (DroppingDisk* disk = DroppingDisk::current()) disk->point();
}
inline std::size_t room(std::size_t bytes) {
  const FileFaults* faults = FileFaults::current();
  return faults != nullptr && faults->short_writes && bytes > 7 ? 7 : bytes;
}
inline int sync(int fd, long number) {
  point();
  const long result = ::syscall(number, fd);
  if (DroppingDisk* disk = DroppingDisk::current(); disk != nullptr && result == 0)
    disk->synced(fd);
  point();
  return static_cast<int>(result);
}

}  // namespace file_faults
}  // namespace purlin
