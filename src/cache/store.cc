// SPDX-License-Identifier: Apache-2.0
#include "cache/store.h"

#include "base/files.h"
#include "cache/shape_check.h"

#include <algorithm>
#include <tuple>

namespace purlin::cache {
namespace {

constexpr std::uint16_t kEntryRecord = 1;

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kExact:
      return "exact";
    case Outcome::kBucket:
      return "bucket";
    case Outcome::kTransferred:
      return "transferred";
    case Outcome::kMiss:
      return "miss";
  }
  return "";
}

Store::Store(std::string directory)
    : directory_(std::move(directory)), log_(join_path(directory_, "entries.log")) {}

std::string Store::default_directory() {
  return environment_variable("PURLIN_CACHE", user_cache_directory() + "/configs");
}

Result<Store> Store::open(const std::string& directory) {
  if (directory.empty()) return error(Code::kInvalid, "the cache directory's name is empty");
  if (file_exists(directory) && !is_directory(directory))
    return error(Code::kIo, "cannot use '{}' as a cache: it is not a directory", directory);
  Store store(directory);
  PURLIN_TRY(store.refresh());
  return store;
}

void Store::visit(const Record& record) {
  ++sequence_;
  if (record.kind != kEntryRecord) {
    ++newer_;
    return;
  }
  Result<Json> json = Json::parse(record.payload);
  Result<Entry> entry = json.is_ok() ? entry_from_json(*json) : Result<Entry>(json.status());
  if (!entry.is_ok()) {
    ++(entry.status().code() == Code::kCorrupt ? newer_ : unreadable_);
    return;
  }
  const std::string id = entry->key.id();
  offsets_[id].push_back(record.offset);
  entries_[id] = {std::move(entry).value(), sequence_};
}

void Store::restart() {
  entries_.clear();
  offsets_.clear();
  unreadable_ = newer_ = 0;
  ++generation_;
}

Status Store::refresh() {
  return log_.poll([this](const Record& record) { visit(record); }, [this] { restart(); });
}

Status Store::put(const Entry& entry) {
  const Json json = to_json(entry);
  // What cannot be read back must not be acknowledged.
  if (Result<Entry> copy = entry_from_json(json); !copy.is_ok())
    return copy.status().with_context("the entry cannot be stored");
  return log_
      .append(
          kEntryRecord, json.dump(), [this](const Record& record) { visit(record); },
          [this] { restart(); })
      .with_context(fmt::format("the cache in '{}'", directory_));
}

Status Store::check_writable() {
  return log_.check_writable().with_context(fmt::format("the cache in '{}'", directory_));
}

Lookup Store::get(const CacheKey& key, const ProblemShape& problem,
                  const LookupOptions& options) const {
  // The best match, then the nearest, then the newest.
  const StoredEntry* best = nullptr;
  Comparison comparison;
  for (const auto& [id, stored] : entries_) {
    Comparison candidate = compare(key, stored.entry.key);
    const auto rank = [](const Comparison& c, const StoredEntry* e) {
      return std::tuple(c.match, c.distance, ~e->sequence);
    };
    if (best != nullptr && rank(comparison, best) <= rank(candidate, &stored)) continue;
    best = &stored;
    comparison = std::move(candidate);
  }

  Lookup lookup;
  if (best == nullptr) {
    lookup.explain.push_back(fmt::format("the cache in '{}' is empty", directory_));
    return lookup;
  }
  const Entry& entry = best->entry;
  if (comparison.match == Match::kSame)
    lookup.outcome = entry.problem == problem ? Outcome::kExact : Outcome::kBucket;
  else if (comparison.match == Match::kTransferable && options.allow_transferred)
    lookup.outcome = Outcome::kTransferred;

  Status valid;
  if (lookup.outcome != Outcome::kMiss && !(entry.problem == problem)) {
    valid = check_shape(entry, problem);
    if (!valid.is_ok()) lookup.outcome = Outcome::kMiss;
  }
  if (lookup.outcome == Outcome::kMiss) {
    if (!valid.is_ok())
      lookup.explain.push_back("no entry; the bucket's config is not valid at this shape: " +
                               valid.message());
    else if (comparison.match == Match::kTransferable)
      lookup.explain.push_back(
          "no entry for this environment; one of the same arch is below, served only on request");
    else
      lookup.explain.push_back("no entry; the nearest one differs as below");
  } else {
    lookup.entry = entry;
  }
  for (std::string& line : explain(comparison)) lookup.explain.push_back(std::move(line));
  if (comparison.match != Match::kForeign)
    lookup.explain.push_back(entry.problem == problem
                                 ? fmt::format("problem: '{}', as measured", problem.text())
                                 : fmt::format("problem: '{}' wanted, '{}' measured: same bucket",
                                               problem.text(), entry.problem.text()));
  return lookup;
}

std::vector<Entry> Store::list() const {
  std::vector<Entry> all;
  for (const auto& [id, stored] : entries_) all.push_back(stored.entry);
  const auto order = [](const Entry& e) {
    return std::tie(e.key.op, e.key.kernel, e.key.backend, e.key.arch, e.key.bucket, e.key.device,
                    e.key.toolkit, e.key.driver, e.key.source_hash, e.key.policy, e.key.dtype);
  };
  std::sort(all.begin(), all.end(),
            [&](const Entry& a, const Entry& b) { return order(a) < order(b); });
  return all;
}

Result<std::vector<Entry>> Store::history(const CacheKey& key) const {
  std::vector<Entry> all;
  const auto found = offsets_.find(key.id());
  if (found == offsets_.end()) return all;
  for (const std::uint64_t offset : found->second) {
    PURLIN_ASSIGN(const std::string payload, log_.read_at(offset));
    PURLIN_ASSIGN(const Json json, Json::parse(payload));
    PURLIN_ASSIGN(Entry entry, entry_from_json(json));
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace purlin::cache
