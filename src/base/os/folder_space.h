// SPDX-License-Identifier: Apache-2.0
// Whether a folder takes files: it is a folder, writable, and its file system has space. Looks
// only, makes nothing. A free function, safe in every thread; a failure is a `problem`.
#pragma once

#include <cstdint>
#include <string>

namespace purlin {

struct FolderSpace {
  std::string problem;           // "it does not exist"; "" = files can be made
  std::uint64_t free_bytes = 0;  // for this user
};

FolderSpace examine_folder(const std::string& path);
// The same of a folder that may still have to be made: of the nearest that exists, which `problem`
// then names.
FolderSpace examine_future_folder(const std::string& path);

}  // namespace purlin
