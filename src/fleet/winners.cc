// SPDX-License-Identifier: Apache-2.0
#include "fleet/winners.h"

#include "base/files.h"
#include "blobs/directory_blobs.h"
#include "cache/share/share.h"
#include "cache/store/entry_document.h"
#include "cache/store/store.h"

#include <memory>
#include <vector>

namespace purlin::fleet {

Result<Json> Winners::of(const std::string& cache, const std::string& kernel, std::size_t limit) {
  const std::lock_guard lock(mutex_);
  const std::string folder = join_path(directory_, cache);
  if (!file_exists(join_path(folder, "index.json")))
    return error(Code::kNotFound, "there is no cache '{}' here", cache);
  const std::unique_ptr<blobs::BlobStore> blobs = blobs::make_directory_blobs(folder);
  cache::Share share(*blobs, clock_, 0);
  PURLIN_ASSIGN(cache::Store copy, cache::Store::open(join_path(directory_ + "-read", cache)));
  PURLIN_TRY(share
                 .pull([&](const std::string& id) { return copy.has(id); },
                       [&](const std::vector<cache::CacheRecord>& records) {
                         return copy.absorb(records).status();
                       })
                 .status());
  Json entries = Json::array();
  for (const cache::StoredEntry& stored : copy.current()) {
    if (!kernel.empty() && stored.entry.key.kernel != kernel) continue;
    if (entries.size() == limit) break;
    entries.push(cache::entry_document(stored, true));
  }
  return entries;
}

}  // namespace purlin::fleet
