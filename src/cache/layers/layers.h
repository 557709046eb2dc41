// SPDX-License-Identifier: Apache-2.0
// Layers: several caches asked as one: the user's, the node's, the fleet's.
//
// A lookup asks them in order. The nearest match of all layers wins; among equals, the upper
// layer's. An entry that was withdrawn in any layer is not served: a demotion in one layer counts
// in all. Writes go to the first layer that can be written. A layer that cannot be read is skipped
// until a refresh() can read it, and unread() reports it. Thread-safety: one thread. Failure: of
// the first layer alone.
#pragma once

#include "cache/layers/merged_view.h"
#include "cache/store/store.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace purlin::cache {

class Layers {
 public:
  // The directory, then those of `below`; one named twice counts once.
  static Result<Layers> open(const std::string& directory, const std::vector<std::string>& below);
  // PURLIN_CACHE_LAYERS: directories separated by ':', below the user's own cache.
  static std::vector<std::string> default_below();

  Lookup get(const CacheKey& key, const ProblemShape& problem,
             const LookupOptions& options = {}) const;
  // Takes in what was appended since, layer by layer; those that could not be read are tried again.
  Status refresh();
  // Into the first layer that takes it. kIo where none does, with every layer's reason.
  Result<Put> put(const Entry& entry, const PutOptions& options = {});
  // About an entry of any layer, dated past all that is known of it, into the first layer that
  // takes it, which need not have the entry. kNotFound where no layer has.
  Status set_status(EntryStatus status);
  // A store above all others.
  void put_on_top(Store store);
  // Reads the first layer again and restores its lost records from the layers below: records of the
  // keys that it serves or served, if a layer has them. Returns the number of restored records.
  Result<std::size_t> repair();

  std::vector<Store>& stores() { return stores_; }
  const std::vector<Store>& stores() const { return stores_; }
  MergedView together() const { return MergedView(stores_); }
  // Layers that could not be read: directory and reason.
  const std::vector<std::pair<std::string, std::string>>& unread() const { return unread_; }

 private:
  // The store whose status about the record is the latest, where that status withdraws it.
  const Store* withdrawn_by(const Id128& record) const;
  std::vector<std::string> directories_;  // of every layer, read or not
  std::vector<Store> stores_;             // of those that could be read, in that order
  std::vector<std::pair<std::string, std::string>> unread_;
};

}  // namespace purlin::cache
