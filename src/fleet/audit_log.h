// SPDX-License-Identifier: Apache-2.0
// AuditLog: one line for each write that the server performed or refused, as JSON, on the disk
// before the client has its answer. Batches are not in it: the store names each of them.
//
// `audit.log` is followed by `audit.log.1` … `.4` where it has its size. [MT] write(). Names are
// foreign text; JSON escapes them. Failure: kIo; the write that it records has happened.
#pragma once

#include "base/appended_file.h"
#include "base/status.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace purlin::fleet {

struct AuditEntry {
  std::int64_t wall_ns = 0;
  std::string_view holder, peer, kind, method, target;
  int status = 0;
  std::uint64_t bytes = 0;
};

class AuditLog {
 public:
  // A piece of a line, which a killed server left, is cut off.
  static Result<std::unique_ptr<AuditLog>> open(const std::string& path,
                                                std::uint64_t max_bytes = std::uint64_t{16} << 20);
  Status write(const AuditEntry& entry);

 private:
  AuditLog(std::string path, std::uint64_t max_bytes)
      : path_(std::move(path)), max_bytes_(max_bytes) {}
  Status open_file();
  Status rotate();

  const std::string path_;
  const std::uint64_t max_bytes_;
  std::mutex mutex_;
  std::optional<AppendedFile> file_;
  std::uint64_t end_ = 0;
};

}  // namespace purlin::fleet
