// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_lines.h"

#include "base/files.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace purlin {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 30;

Status os_error(std::string_view verb, const std::string& path) {
  return error(Code::kIo, "cannot {} '{}': {}", verb, path, std::strerror(errno));
}

}  // namespace

JsonLines::JsonLines(JsonLines&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      lines_(std::move(other.lines_)) {}

JsonLines::~JsonLines() {
  if (fd_ >= 0) ::close(fd_);  // and with it goes the lock
}

Result<JsonLines> JsonLines::open(const std::string& path) {
  PURLIN_TRY(make_directories(parent_path(path)));
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return os_error("open", path);
  JsonLines file(path, fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return os_error("lock", path);
    return error(Code::kUnavailable, "another process holds '{}'", path);
  }
  PURLIN_TRY(file.load());
  return file;
}

Status JsonLines::load() {
  PURLIN_ASSIGN(const std::string text, read_file(path_, kMaxBytes));
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  for (std::size_t start = 0; start < whole;) {
    const std::size_t end = text.find('\n', start);
    Result<Json> line = Json::parse(std::string_view(text).substr(start, end - start));
    if (!line.is_ok())
      return error(Code::kCorrupt, "'{}' line {}: {}", path_, lines_.size() + 1,
                   line.status().message());
    lines_.push_back(std::move(line).value());
    start = end + 1;
  }
  if (whole < text.size() && ::ftruncate(fd_, static_cast<off_t>(whole)) != 0)
    return os_error("repair", path_);
  return Status::ok();
}

Status JsonLines::append(const Json& line) {
  const std::string text = line.dump() + "\n";
  const off_t size = ::lseek(fd_, 0, SEEK_END);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd_, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      // A full disk: the half that got there would join the next line that fits.
      const Status status = os_error("write", path_);
      if (size >= 0) (void)!::ftruncate(fd_, size);
      return status;
    }
    done += static_cast<std::size_t>(wrote);
  }
  return ::fdatasync(fd_) == 0 ? Status::ok() : os_error("write", path_);
}

Status JsonLines::clear() {
  lines_.clear();
  return ::ftruncate(fd_, 0) == 0 ? Status::ok() : os_error("empty", path_);
}

}  // namespace purlin
