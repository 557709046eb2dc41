// SPDX-License-Identifier: Apache-2.0
#include "cache/layers/layers.h"

#include "base/files.h"
#include "base/text.h"
#include "base/time.h"

#include <array>
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
  // The program may change its own directory.
  layers.directories_ = {directory};
  std::unordered_set<std::string> named = {absolute_path(directory)};
  for (const std::string& next : below)
    if (named.insert(absolute_path(next)).second)
      layers.directories_.push_back(absolute_path(next));
  PURLIN_TRY(layers.refresh());
  return layers;
}

Status Layers::refresh() {
  unread_.clear();
  std::size_t at = 0;  // in stores_
  for (const std::string& directory : directories_) {
    Status status;
    if (at < stores_.size() && stores_[at].directory() == directory) {
      status = stores_[at].refresh();  // where it fails, what it had still counts
      ++at;
    } else if (Result<Store> store = Store::open(directory); store.is_ok()) {
      stores_.insert(stores_.begin() + static_cast<std::ptrdiff_t>(at), std::move(store).value());
      ++at;
    } else {
      status = store.status();
    }
    if (status.is_ok()) continue;
    if (directory == directories_.front()) return status;
    unread_.emplace_back(directory, status.message());
  }
  return Status::ok();
}

void Layers::put_on_top(Store store) {
  directories_.insert(directories_.begin(), store.directory());
  stores_.insert(stores_.begin(), std::move(store));
}

Status Layers::set_status(EntryStatus status) {
  PURLIN_TRY(refresh());
  const Id128 record = Id128::parse(status.record);
  if (together().entry(record) == nullptr)
    return error(Code::kNotFound, "no layer of the cache has an entry record '{}'", status.record);
  if (const StatusSummary* latest = together().standing(record).summary;
      latest != nullptr && latest->at_ns >= status.at_ns())
    status.at = format_rfc3339_ns(latest->at_ns + 1);
  const std::array<CacheRecord, 1> records = {make_record(status)};
  std::string reasons;
  for (Store& store : stores_) {
    const Result<Absorbed> absorbed = store.absorb(records);
    if (absorbed.is_ok() && absorbed->refused > 0)
      return error(Code::kInvalid, "{}", absorbed->reasons.front());
    if (absorbed.is_ok() || absorbed.status().code() != Code::kIo) return absorbed.status();
    reasons += (reasons.empty() ? "" : "; ") + absorbed.status().message();
  }
  return error(Code::kIo, "no layer of the cache can be written: {}", reasons);
}

const Store* Layers::withdrawn_by(const Id128& record) const {
  const MergedView::Standing latest = together().standing(record);
  return latest.summary == nullptr || is_served(latest.summary->entry_state()) ? nullptr
                                                                               : latest.store;
}

Lookup Layers::get(const CacheKey& key, const ProblemShape& problem,
                   const LookupOptions& options) const {
  LookupOptions together = options;
  // What is known against an entry is the union's to say, as after a merge.
  const MergedView all(stores_);
  together.served = [&](const Id128& record) { return all.served(record); };
  together.validated = [&](const Id128& record, std::uint32_t toolkit, std::uint32_t driver) {
    return all.validated(record, toolkit, driver);
  };
  Lookup best;
  std::vector<std::string> withdrawn, damaged;
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    Lookup lookup = stores_[i].get(key, problem, together);
    const Store* by =
        lookup.withdrawn.empty() ? nullptr : withdrawn_by(Id128::parse(lookup.withdrawn));
    if (by != nullptr && by != &stores_[i])
      withdrawn.push_back(fmt::format("layer '{}': its entry was withdrawn in '{}'",
                                      stores_[i].directory(), by->directory()));
    damaged.insert(damaged.end(), lookup.damaged.begin(), lookup.damaged.end());
    // Outcomes are in the order of their worth.
    if (i == 0 || (lookup.outcome < best.outcome && lookup.entry)) best = std::move(lookup);
  }
  best.damaged = std::move(damaged);
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
  const auto note = [&](const EntrySummary& summary) { keys.insert(summary.key); };
  first.record_set().each_entry(note);
  PURLIN_TRY(first.reread());
  first.record_set().each_entry(note);
  std::size_t back = 0;
  for (std::size_t i = 1; i < stores_.size(); ++i) {
    std::vector<CacheRecord> lost;
    const auto wanted = [&](const EntrySummary& summary) {
      return keys.count(summary.key) > 0 && !first.record_set().has(summary.record);
    };
    std::vector<Id128> ids;
    stores_[i].record_set().each_entry([&](const EntrySummary& summary) {
      if (wanted(summary)) ids.push_back(summary.record);
    });
    stores_[i].record_set().each_status([&](const StatusSummary& summary) {
      const EntrySummary* about = stores_[i].record_set().entry(summary.target);
      if (about != nullptr && keys.count(about->key) > 0 && !first.record_set().has(summary.record))
        ids.push_back(summary.record);
    });
    for (const LostRecord& record : first.lost()) ids.push_back(Id128::parse(record.record));
    for (const Id128& id : ids)
      if (Result<CacheRecord> record = stores_[i].record(id.hex()); record.is_ok())
        lost.push_back(std::move(record).value());
    PURLIN_ASSIGN(const Absorbed absorbed, first.absorb(lost));
    back += absorbed.added;
  }
  return back;
}

}  // namespace purlin::cache
