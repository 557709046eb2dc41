// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/stream.h"

#include "base/files.h"
#include "base/os/descriptor.h"
#include "base/text.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

namespace purlin::cli {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

// Whether all was written; errno says why not.
bool put(int file, const char* from, std::size_t size) {
  while (size > 0) {
    const ssize_t put = ::write(file, from, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    from += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<const StreamCopy>> StreamCopy::read(int fd, const std::string& name,
                                                           std::uint64_t max_bytes) {
  PURLIN_ASSIGN(std::string folder, make_temporary_directory("purlin-stream"));
  const auto copy = std::make_shared<const StreamCopy>(std::move(folder));
  const Descriptor file(
      ::open(copy->path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0)
    return error(Code::kIo, "cannot create '{}': {}", copy->path(), std::strerror(errno));
  std::vector<char> piece(kPieceBytes);
  std::uint64_t all = 0;
  while (true) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error(Code::kIo, "cannot read {}: {}", name, std::strerror(errno));
    if (got == 0) return copy;
    all += static_cast<std::uint64_t>(got);
    if (all > max_bytes)
      return error(Code::kInvalid, "{} has more than {}: write it to a file and name that", name,
                   format_bytes(static_cast<double>(max_bytes)));
    if (!put(file.get(), piece.data(), static_cast<std::size_t>(got)))
      return error(Code::kIo, "cannot copy {} to '{}': {}; set TMPDIR to a folder with more room",
                   name, copy->path(), std::strerror(errno));
  }
}

StreamCopy::~StreamCopy() { static_cast<void>(remove_tree(folder_)); }

std::string StreamCopy::path() const { return join_path(folder_, "stream"); }

}  // namespace purlin::cli
