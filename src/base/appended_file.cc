// SPDX-License-Identifier: Apache-2.0
#include "base/appended_file.h"

#include "base/files.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace purlin {
namespace {

Status appended_error(std::string_view verb, const std::string& path) {
  return error(Code::kIo, "cannot {} '{}': {}", verb, path, std::strerror(errno));
}

}  // namespace

Result<AppendedFile> AppendedFile::open(const std::string& path) {
  const std::string folder = parent_path(path);
  PURLIN_TRY(make_directories_durably(folder));
  const int fd = open_or_create(path);
  if (fd < 0 && errno == ELOOP)
    return error(Code::kIo, "'{}' is a link to nothing; remove it, or make what it names", path);
  if (fd < 0) return appended_error("write", path);
  AppendedFile file(path, fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return appended_error("write", path);
  if (!S_ISREG(info.st_mode)) return error(Code::kIo, "'{}' is not a file", path);
  // Also where the file was there: who made it may have been killed before it synced its name.
  PURLIN_TRY(sync_folder(folder));
  PURLIN_TRY(sync_folder(parent_path(folder)));
  return file;
}

AppendedFile::AppendedFile(AppendedFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

AppendedFile::~AppendedFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status AppendedFile::append(std::uint64_t end, std::string_view bytes) {
  PURLIN_TRY(cut(end));
  std::uint64_t at = end;
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    at += static_cast<std::uint64_t>(put);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  if (bytes.empty() && ::fdatasync(fd_) == 0) return Status::ok();
  const Status failure = appended_error("write", path_);
  // If this fails, too, the next writer cuts the rest off.
  (void)cut(end).is_ok();
  return failure;
}

Status AppendedFile::sync() {
  return ::fdatasync(fd_) == 0 ? Status::ok() : appended_error("sync", path_);
}

Status AppendedFile::cut(std::uint64_t end) {
  struct stat info {};
  if (::fstat(fd_, &info) == 0 && static_cast<std::uint64_t>(info.st_size) <= end)
    return Status::ok();
  return ::ftruncate(fd_, static_cast<off_t>(end)) == 0 ? Status::ok()
                                                        : appended_error("cut", path_);
}

}  // namespace purlin
