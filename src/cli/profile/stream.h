// SPDX-License-Identifier: Apache-2.0
// StreamCopy: the contents of a pipe as a regular file, since the importers read a file more than
// once. The copy is in a new folder under $TMPDIR and goes with the object. It is bounded: a
// pipe that does not end must not fill the disk. Belongs to one thread.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <memory>
#include <string>

namespace purlin::cli {

class StreamCopy {
 public:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 30;

  // Reads `fd` to its end. `name` stands in messages. kInvalid: it has more than `max_bytes`.
  static Result<std::shared_ptr<const StreamCopy>> read(int fd, const std::string& name,
                                                        std::uint64_t max_bytes = kMaxBytes);
  explicit StreamCopy(std::string folder) : folder_(std::move(folder)) {}
  ~StreamCopy();
  StreamCopy(const StreamCopy&) = delete;
  StreamCopy& operator=(const StreamCopy&) = delete;

  std::string path() const;

 private:
  std::string folder_;
};

}  // namespace purlin::cli
