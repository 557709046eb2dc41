// SPDX-License-Identifier: Apache-2.0
#include "cache/layers.h"

#include "base/files.h"
#include "base/text.h"

#include <tuple>
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

const Store* Layers::withdrawn_by(const Id128& record) const {
  const Store* by = nullptr;
  const StatusRow* latest = nullptr;
  for (const Store& store : stores_) {
    const StatusRow* standing = store.catalog().standing(record);
    if (standing == nullptr || (latest != nullptr && std::tie(standing->at_ns, standing->record) <=
                                                         std::tie(latest->at_ns, latest->record)))
      continue;
    latest = standing;
    by = &store;
  }
  return latest == nullptr || is_served(latest->entry_state()) ? nullptr : by;
}

Lookup Layers::get(const CacheKey& key, const ProblemShape& problem,
                   const LookupOptions& options) const {
  LookupOptions together = options;
  // What is known against an entry is the union's to say, as after a merge.
  together.served = [this](const Id128& record) { return withdrawn_by(record) == nullptr; };
  Lookup best;
  std::vector<std::string> withdrawn;
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    Lookup lookup = stores_[i].get(key, problem, together);
    const Store* by =
        lookup.withdrawn.empty() ? nullptr : withdrawn_by(Id128::parse(lookup.withdrawn));
    if (by != nullptr && by != &stores_[i])
      withdrawn.push_back(fmt::format("layer '{}': its entry was withdrawn in '{}'",
                                      stores_[i].directory(), by->directory()));
    // Outcomes are in the order of their worth.
    if (i == 0 || (lookup.outcome < best.outcome && lookup.entry)) best = std::move(lookup);
  }
  for (std::string& line : withdrawn) best.explain.push_back(std::move(line));
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
