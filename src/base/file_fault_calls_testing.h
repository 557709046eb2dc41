// SPDX-License-Identifier: Apache-2.0
// For tests only: the definitions that take the C library's place in a test program, for
// base/file_faults_testing.h. Exactly one file of the program includes this.
#pragma once

#include "base/file_faults_testing.h"

// Also for the calls of the C++ library, where it is a shared one.
#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  if (purlin::file_faults::strikes("open")) return -1;
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

// What libraries call that were built for large files, as SQLite is.
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, int) : 0;
  va_end(more);
  return ::open(path, flags, mode);
}

ssize_t read(int fd, void* to, size_t bytes) {
  if (purlin::file_faults::strikes("read")) return -1;
  return ::syscall(SYS_read, fd, to, bytes);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t offset) {
  if (purlin::file_faults::strikes("read")) return -1;
  return ::syscall(SYS_pread64, fd, to, bytes, offset);
}

ssize_t write(int fd, const void* from, size_t bytes) {
  if (purlin::file_faults::strikes("write")) return -1;
  return ::syscall(SYS_write, fd, from, purlin::file_faults::room(bytes));
}

ssize_t pwrite(int fd, const void* from, size_t bytes, off_t offset) {
  if (purlin::file_faults::strikes("write")) return -1;
  return ::syscall(SYS_pwrite64, fd, from, purlin::file_faults::room(bytes), offset);
}

int ftruncate(int fd, off_t size) noexcept {
  if (purlin::file_faults::strikes("ftruncate")) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, fd, size));
}

ssize_t pread64(int fd, void* to, size_t bytes, off64_t offset) {
  return ::pread(fd, to, bytes, offset);
}

ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t offset) {
  return ::pwrite(fd, from, bytes, offset);
}

int ftruncate64(int fd, off64_t size) noexcept { return ::ftruncate(fd, size); }

int rename(const char* from, const char* to) noexcept {
  if (purlin::file_faults::strikes("rename")) return -1;
  purlin::file_faults::point();
  const long result = ::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
  purlin::file_faults::point();
  return static_cast<int>(result);
}

int unlink(const char* path) noexcept {
  if (purlin::file_faults::strikes("unlink")) return -1;
  return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (purlin::file_faults::strikes("mkdir")) return -1;
  return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

// The sanitizers need theirs.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (fd >= 0 && purlin::file_faults::strikes("mmap")) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

void* mmap64(void* at, size_t bytes, int protection, int flags, int fd, off64_t offset) noexcept {
  return ::mmap(at, bytes, protection, flags, fd, offset);
}
#endif

dirent* readdir(DIR* folder) {
  using Readdir = dirent* (*)(DIR*);
  static const auto next = reinterpret_cast<Readdir>(::dlsym(RTLD_NEXT, "readdir"));
  if (purlin::file_faults::strikes("readdir")) return nullptr;
  return next(folder);
}

int link(const char* from, const char* to) noexcept {
  if (purlin::file_faults::strikes("link")) return -1;
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
  if (purlin::file_faults::strikes("fsync")) return -1;
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
  return purlin::file_faults::sync(fd, SYS_fsync);
}

int fdatasync(int fd) {
  if (purlin::file_faults::strikes("fdatasync")) return -1;
  return purlin::file_faults::sync(fd, SYS_fdatasync);
}

}  // extern "C"
#pragma GCC visibility pop
