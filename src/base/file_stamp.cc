// SPDX-License-Identifier: Apache-2.0
#include "base/file_stamp.h"

#include <sys/stat.h>

namespace purlin {

FileStamp file_stamp(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_size,
          static_cast<std::int64_t>(info.st_ino)};
}

}  // namespace purlin
