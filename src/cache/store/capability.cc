// SPDX-License-Identifier: Apache-2.0
#include "cache/store/capability.h"

#include "base/os/folder_space.h"
#include "cache/store/store.h"

namespace purlin::cache {
namespace {

constexpr std::uint64_t kLeastBytes = 64 << 10;  // an entry takes a few hundred

}  // namespace

Capability examine_directory() {
  const std::string directory = Store::default_directory();
  const FolderSpace space = examine_future_folder(directory);
  Capability result{"config_cache", "Config cache", CapabilityState::kOk, directory, ""};
  if (!space.problem.empty() || space.free_bytes < kLeastBytes) {
    result.state = CapabilityState::kMissing;
    result.evidence +=
        fmt::format(" ({})", space.problem.empty() ? "the disk is full" : space.problem);
    result.fix =
        "make it writable and free space, or set PURLIN_CACHE to a folder that is writable";
  }
  return result;
}

}  // namespace purlin::cache
