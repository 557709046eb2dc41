// SPDX-License-Identifier: Apache-2.0
// Files: bounded reads, writes that are whole or absent, locks between processes.
//
// write_atomic survives a crash at any moment: readers see the old contents or the new. Errors name
// the path and the operating system's reason. Thread-safety: free functions are safe; a FileLock
// belongs to one thread.
#pragma once

#include "base/status.h"
#include "base/time.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

// A descriptor of a regular file, of /dev/null, or of a pipe that a shell made (`<(…)`). A named
// pipe or a device would keep a reader waiting, or never end: kIo, at once.
Result<int> open_to_read(const std::string& path);
// The whole file. Refuses one larger than max_bytes rather than running out of memory.
Result<std::string> read_file(const std::string& path,
                              std::size_t max_bytes = std::size_t{1} << 30);
// The same in parts, from the first to the last.
Status read_parts(const std::string& path, std::size_t max_bytes,
                  const std::function<Status(std::string_view part)>& take);
// Writes PATH.tmp.PID.N, fsyncs it, renames it to PATH, fsyncs the folder. A link is followed. A
// device or a pipe is written directly.
Status write_atomic(const std::string& path, std::string_view contents);
// The same, written piece by piece: nothing is at PATH before commit(), and nothing is left behind
// without it. One owner, one thread.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();
  Status append(std::string_view bytes);
  // Once, last; durable when ok. After a failure PATH has its old contents or the new.
  Status commit();
  // The same where nothing is at PATH; false: something is, and it stays unchanged. Needs no lock,
  // even when other processes write to PATH. kUnavailable where the file system cannot do it
  // (neither hard links nor RENAME_NOREPLACE): then nothing has happened, and commit() may follow,
  // under a lock.
  Result<bool> commit_new();

 private:
  AtomicFile() = default;
  void discard();
  std::string path_, temporary_;  // temporary_ is "" where a device or a pipe is written to
  int fd_ = -1;
};
Status make_directories(const std::string& path);
// The same; those that it makes are on the disk when it returns. Where it makes one, it also syncs
// the name of the deepest that was there: who made that one may have been killed before its sync.
Status make_directories_durably(const std::string& path);
// So that names made or removed in it are on the disk; where its file system cannot, ok.
Status sync_folder(const std::string& path);
// The descriptor of a file to read and write, made where it does not exist; -1 with errno set. A
// link that leads to nothing is ELOOP: it would make a file where it points.
int open_or_create(const std::string& path);
bool file_exists(const std::string& path);
bool is_directory(const std::string& path);
bool is_link(const std::string& path);
Result<std::uint64_t> file_size(const std::string& path);
// Into another folder, replacing a file that is there. A power cut leaves it in one of both, or in
// both. The new name is on the disk when it returns.
Status move_file(const std::string& from, const std::string& to);
Status remove_file(const std::string& path);  // a file that is already gone is no error
Status remove_tree(const std::string& path);
// Plain names (no "." or ".."), sorted.
Result<std::vector<std::string>> list_directory(const std::string& path);
// A new folder under $TMPDIR or /tmp.
Result<std::string> make_temporary_directory(std::string_view prefix);
std::string join_path(std::string_view folder, std::string_view name);  // an absolute name wins
std::string parent_path(std::string_view path);
std::string base_name(std::string_view path);
std::string absolute_path(const std::string& path);
// The folder of the running executable or, from a library, of the file that holds `address`.
std::string executable_directory();
std::string module_path(const void* address);
// Whether this process has rights that its caller has not (setuid, setgid, file capabilities). Its
// environment is then not read: environment_variable() returns the fallback.
bool is_privileged_process();
// A folder, and no link to one, that belongs to this user and that no other can enter.
bool is_private_directory(const std::string& path);
// Makes it so, with its parents; a folder of this user is closed to others. kIo where it cannot be.
Status make_private_directory(const std::string& path);
// Whether what is in it is this user's own: its folder, no link, where no other can write.
bool is_own_directory(const std::string& path);
// $TMPDIR/purlin-UID or /tmp/purlin-UID, made private. Where that name is another's, a link or open
// to others, a path below which no file can be.
std::string private_temporary_directory();
// $XDG_CACHE_HOME/purlin, else $HOME/.cache/purlin, else private_temporary_directory().
std::string user_cache_directory();
std::string user_config_directory();
// $PURLIN_STATE, else $XDG_STATE_HOME/purlin, else $HOME/.local/state/purlin, else
// private_temporary_directory().
std::string user_state_directory();
std::string environment_variable(const char* name, std::string_view fallback = "");

// An advisory lock (flock) on PATH, which is created if need be; released with the object, and by
// the kernel when the process dies.
class FileLock {
 public:
  static Result<FileLock> acquire(const std::string& path);
  // Waits for `seconds` at most; kUnavailable when another still holds it.
  static Result<FileLock> acquire(const std::string& path, double seconds,
                                  Clock& clock = system_clock());
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace purlin
