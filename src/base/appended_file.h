// SPDX-License-Identifier: Apache-2.0
// AppendedFile: a file that grows by whole pieces, each on the disk before append() says so.
//
// open() makes the file and its folders, and syncs their names: bytes of a file whose name is not
// durable are lost with it. A piece that cannot be written or synced is cut off again. Every file
// of Purlin that is appended to and promised to last is written through this; those that are
// replaced, through AtomicFile. Who writes holds a lock. Thread-safety: one thread. Failure: kIo;
// the file then ends where it ended before.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace purlin {

class AppendedFile {
 public:
  // A link is not followed where it leads to nothing.
  static Result<AppendedFile> open(const std::string& path);
  AppendedFile(AppendedFile&& other) noexcept;
  AppendedFile& operator=(AppendedFile&&) = delete;
  ~AppendedFile();

  // Writes `bytes` at `end` and cuts off what is after them.
  Status append(std::uint64_t end, std::string_view bytes);
  // What a writer that was killed wrote before its sync is on the disk afterwards.
  Status sync();
  Status cut(std::uint64_t end);
  int descriptor() const { return fd_; }

 private:
  AppendedFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
};

}  // namespace purlin
