// SPDX-License-Identifier: Apache-2.0
#include "cache/layers.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>
#include <unordered_set>

namespace purlin::cache {

std::vector<std::string> Layers::default_below() {
  std::vector<std::string> directories;
  for (const std::string& part : split(environment_variable("PURLIN_CACHE_LAYERS"), ':'))
    if (!part.empty()) directories.push_back(part);
  return directories;
}

Result<Layers> Layers::open(const std::string& directory, const std::vector<std::string>& below) {
  Layers layers;
  PURLIN_ASSIGN(Store first, Store::open(directory));
  layers.stores_.push_back(std::move(first));
  std::unordered_set<std::string> named = {absolute_path(directory)};
  for (const std::string& next : below) {
    if (!named.insert(absolute_path(next)).second) continue;
    Result<Store> store = Store::open(next);
    if (store.is_ok())
      layers.stores_.push_back(std::move(store).value());
    else
      layers.unread_.emplace_back(next, store.status().message());
  }
  return layers;
}

Lookup Layers::get(const CacheKey& key, const ProblemShape& problem,
                   const LookupOptions& options) const {
  Lookup best = stores_.front().get(key, problem, options);
  for (std::size_t i = 1; i < stores_.size(); ++i) {
    Lookup lookup = stores_[i].get(key, problem, options);
    // Outcomes are in the order of their worth.
    if (lookup.outcome >= best.outcome || !lookup.entry) continue;
    // What another layer has withdrawn is not served from this one.
    const Id128 record = Id128::parse(lookup.record);
    const auto withdraws = [&](const Store& store) { return !store.catalog().served(record); };
    const auto by = std::find_if(stores_.begin(), stores_.end(), withdraws);
    if (by != stores_.end()) {
      best.explain.push_back(fmt::format("layer '{}': its entry was withdrawn in '{}'",
                                         stores_[i].directory(), by->directory()));
      continue;
    }
    best = std::move(lookup);
  }
  if (best.entry && stores_.size() > 1)
    best.explain.push_back(fmt::format("layer: '{}'", best.layer));
  for (const auto& [directory, reason] : unread_)
    best.explain.push_back(fmt::format("layer '{}' was not asked: {}", directory, reason));
  return best;
}

Result<Put> Layers::put(const Entry& entry, const PutOptions& options) {
  std::string reasons;
  for (Store& store : stores_) {
    Result<Put> put = store.put(entry, options);
    if (put.is_ok() || put.status().code() != Code::kIo) return put;
    reasons += (reasons.empty() ? "" : "; ") + put.status().message();
  }
  return error(Code::kIo, "no layer of the cache can be written: {}", reasons);
}

Result<std::size_t> Layers::repair() {
  Store& first = stores_.front();
  // Which keys it was about, the lost records' among them, is what an index still knows.
  std::unordered_set<Id128, Id128Hash> keys;
  const auto note = [&](const EntryRow& row) { keys.insert(row.key); };
  first.catalog().each_entry(note);
  PURLIN_TRY(first.reread());
  first.catalog().each_entry(note);
  std::size_t back = 0;
  for (std::size_t i = 1; i < stores_.size(); ++i) {
    std::vector<StoredRecord> lost;
    const auto wanted = [&](const EntryRow& row) {
      return keys.count(row.key) > 0 && !first.catalog().has(row.record);
    };
    std::vector<Id128> ids;
    stores_[i].catalog().each_entry([&](const EntryRow& row) {
      if (wanted(row)) ids.push_back(row.record);
    });
    stores_[i].catalog().each_status([&](const StatusRow& row) {
      const EntryRow* about = stores_[i].catalog().entry(row.target);
      if (about != nullptr && keys.count(about->key) > 0 && !first.catalog().has(row.record))
        ids.push_back(row.record);
    });
    for (const Id128& id : ids)
      if (Result<StoredRecord> record = stores_[i].record(id.hex()); record.is_ok())
        lost.push_back(std::move(record).value());
    PURLIN_ASSIGN(const Absorbed absorbed, first.absorb(lost));
    back += absorbed.added;
  }
  return back;
}

}  // namespace purlin::cache
