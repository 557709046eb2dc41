// SPDX-License-Identifier: Apache-2.0
#include "cache/store/capability.h"

#include "base/files.h"
#include "cache/store/store.h"

#include <unistd.h>

namespace purlin::cache {

Capability examine_directory() {
  const std::string directory = Store::default_directory();
  // The nearest folder that exists decides: looking must not create anything.
  std::string existing = absolute_path(directory);
  while (!file_exists(existing) && existing != "/" && !existing.empty())
    existing = parent_path(existing);
  Capability result{"config_cache", "Config cache", CapabilityState::kOk, directory, ""};
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    result.state = CapabilityState::kMissing;
    result.evidence += fmt::format(" ({} is not writable)", existing);
    result.fix = "make it writable, or set PURLIN_CACHE to a folder that is";
  }
  return result;
}

}  // namespace purlin::cache
