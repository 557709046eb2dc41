// SPDX-License-Identifier: Apache-2.0
#include "fleet/stored_bytes.h"

#include <algorithm>
#include <utility>

namespace purlin::fleet {
namespace {

std::string folder_of(const std::string& key) { return key.substr(0, key.rfind('/') + 1); }

// The object that a temporary file is about to be, or was to be; another object: itself.
std::string target_of(const std::string& key) {
  return key.substr(0, key.find(".tmp.", key.rfind('/') + 1));
}

}  // namespace

bool StoredBytes::begin(const std::string& key, std::uint64_t adds, std::uint64_t quota) {
  const std::lock_guard lock(mutex_);
  if (quota > 0 && (adds > quota || stored_ + reserved_ > quota - adds)) return false;
  Change& change = changing_[key];
  if (change.under_way++ == 0) change.size = size_of_(key);
  reserved_ += adds;
  total_.store(stored_ + reserved_);
  return true;
}

// What is there is looked at under the lock: of two changes of one key, the later look counts.
void StoredBytes::end(const std::string& key, std::uint64_t adds) {
  const std::lock_guard lock(mutex_);
  Change& change = changing_[key];
  const std::uint64_t size = size_of_(key), before = change.size;
  const std::string folder = folder_of(key);
  const auto known = folders_.find(folder);
  const std::uint64_t bytes = known == folders_.end() ? 0 : known->second;
  reserved_ -= adds;
  set(folder, std::max(bytes + size, before) - before);
  change.size = size;
  if (folder == counted_) changed_[key] = size;
  if (--change.under_way == 0) changing_.erase(key);
}

Status StoredBytes::count(const std::string& folder,
                          const std::function<Result<std::vector<blobs::BlobInfo>>()>& list) {
  {
    const std::lock_guard lock(mutex_);
    counted_ = folder;
  }
  const Result<std::vector<blobs::BlobInfo>> objects = list();
  const std::lock_guard lock(mutex_);
  counted_.clear();
  std::map<std::string, std::uint64_t> changed = std::exchange(changed_, {});
  if (!objects.is_ok()) return objects.status();
  // Of what is changing the listing may have either size; end() goes by that of its beginning.
  for (const auto& [key, change] : changing_)
    if (folder_of(key) == folder) changed[key] = change.size;
  std::uint64_t bytes = 0;
  for (const auto& [key, size] : changed) bytes += size;
  for (const blobs::BlobInfo& object : *objects)
    if (!changed.contains(object.key) && !changed.contains(target_of(object.key)))
      bytes += object.size;
  set(folder, bytes);
  return Status::ok();
}

std::vector<std::string> StoredBytes::folders() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : folders_) names.push_back(name);
  return names;
}

void StoredBytes::set(const std::string& folder, std::uint64_t bytes) {
  const auto known = folders_.find(folder);
  if (known != folders_.end()) {
    stored_ -= known->second;
    folders_.erase(known);
  }
  if (bytes > 0) folders_.emplace(folder, bytes);
  stored_ += bytes;
  total_.store(stored_ + reserved_);
}

}  // namespace purlin::fleet
