// SPDX-License-Identifier: Apache-2.0
#include "fleet/token_file.h"

#include <sys/stat.h>

namespace purlin::fleet {

std::optional<Result<Tokens>> TokenFile::look() {
  const Stamp now = stamp();
  if (path_.empty() || now == seen_) return std::nullopt;
  Result<Tokens> tokens = load_(path_);
  if (tokens.is_ok()) {
    seen_ = now;
    said_.clear();
    return tokens;
  }
  seen_.reset();
  const std::string problem = tokens.status().message();
  if (problem == said_) return std::nullopt;
  said_ = problem;
  return tokens;
}

// With the time of the last change of any kind: a chown, or an edit that puts the time of the last
// write back, is seen by nothing else.
TokenFile::Stamp TokenFile::stamp() const {
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0) return {-1};
  return {info.st_mtim.tv_sec,  info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
          info.st_ctim.tv_nsec, info.st_size,         static_cast<std::int64_t>(info.st_ino),
          info.st_mode};
}

}  // namespace purlin::fleet
