// SPDX-License-Identifier: Apache-2.0
#include "cache/store/store.h"

#include "base/files.h"
#include "base/time.h"
#include "cache/store/lost_records.h"
#include "cache/store/retention.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace purlin::cache {
namespace {

constexpr std::size_t kMaxReasons = 16;
// Records after the index: how many a writer lets gather (and at least an eighth of all), and how
// many are held as single summaries.
constexpr std::size_t kIndexAt = 1000, kFoldAt = 50'000;
constexpr std::size_t kAppendBytes = std::size_t{8} << 20;  // one append of an absorb

std::uint16_t kind_number(RecordKind kind) { return static_cast<std::uint16_t>(kind); }

// The payload of a record from elsewhere, when it is what it says.
Status check_record(const CacheRecord& record) {
  if (record.payload.size() > kMaxPayload)
    return error(Code::kInvalid, "a record of {} bytes is larger than the limit of {}",
                 record.payload.size(), kMaxPayload);
  PURLIN_ASSIGN(const Json json, Json::parse(record.payload));
  if (record_id(json) != record.id)
    return error(Code::kCorrupt, "its contents do not have its id; it was changed on the way");
  if (record.kind == RecordKind::kEntry) {
    PURLIN_ASSIGN(const Entry entry, entry_from_json(json));
    // One that claims shapes which its own rules do not give it would be served at them.
    PURLIN_ASSIGN(const std::string bucket, bucket_of(entry.bucket_rules, entry.problem));
    if (bucket != entry.key.bucket)
      return error(Code::kInvalid,
                   "its key has the bucket '{}', but its rules put its problem {} into '{}'",
                   entry.key.bucket, entry.problem.text(), bucket);
    return Status::ok();
  }
  if (record.kind == RecordKind::kStatus) return status_from_json(json).status();
  return error(Code::kInvalid, "records of kind {} are not known", kind_number(record.kind));
}

bool passes(const CacheKey& filter, const CacheKey& key) {
  const auto wanted = filter.fields(), stored = key.fields();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i].second.empty() && wanted[i].second != stored[i].second) return false;
  return true;
}

// The same by hashes: no record is read for what cannot pass.
bool passes(const FieldHashes& filter, const FieldHashes& fields) {
  for (std::size_t i = 0; i < kKeyFields; ++i)
    if (filter[i] != 0 && filter[i] != fields[i]) return false;
  return true;
}

}  // namespace

bool StoredEntry::validated(const CacheKey& wanted) const {
  for (const FieldComparison& field : compare(wanted, entry.key).fields)
    if (field.match != Match::kSame && field.field != "bucket" && field.field != "toolkit" &&
        field.field != "driver")
      return false;
  return std::any_of(statuses.begin(), statuses.end(), [&](const EntryStatus& status) {
    return status.state == EntryState::kValidated && status.toolkit == wanted.toolkit &&
           status.driver == wanted.driver;
  });
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
  const bool adopted = store.adopt_index();
  PURLIN_TRY(store.refresh());
  if (!adopted) PURLIN_TRY(store.note_lost());
  store.keep_lost(lost_records::load(directory));
  store.changes_ = {};  // no caller follows them yet
  return store;
}

// What records are parsed with, one after the other.
struct Store::Parsing {
  JsonScan scan;
  RecordIds ids;
  ConstraintCache constraints;
};

void Store::take(const Entry& entry, const Id128& id, std::uint64_t offset) {
  const EntrySummary summary = summary_of(entry, id, offset);
  record_set_.add(summary);
  changes_.push_back({summary.group, summary.key});
}

Status Store::take(const Record& record, Parsing& parsing) {
  if (record.kind == kind_number(RecordKind::kEntry) && parsing.scan.scan(record.payload))
    if (const Id128 id = parsing.ids.of(parsing.scan.root()); id != Id128())
      if (const auto entry =
              entry_from_json(parsing.scan.root(), EntryParts::kAll, parsing.constraints);
          entry.is_ok()) {
        take(*entry, id, record.offset);
        return Status::ok();
      }
  // Not in the plain form, or not right: what it is then, and what is wrong with it, says Json.
  PURLIN_ASSIGN(const Json json, Json::parse(record.payload));
  const Id128 id = Id128::parse(record_id(json));
  if (record.kind == kind_number(RecordKind::kEntry)) {
    PURLIN_ASSIGN(const Entry entry, entry_from_json(json));
    take(entry, id, record.offset);
    return Status::ok();
  }
  PURLIN_ASSIGN(const EntryStatus status, status_from_json(json));
  const StatusSummary summary = summary_of(status, id, record.offset);
  record_set_.add(summary);
  if (const EntrySummary* about = record_set_.entry(summary.target))
    changes_.push_back({about->group, about->key});
  else
    changes_.push_back({0, {}, summary.target});
  return Status::ok();
}

// `expected`: take over no other one.
bool Store::adopt_index(const LogMark* expected) {
  Result<std::shared_ptr<const SummaryIndex>> index =
      SummaryIndex::map(join_path(directory_, "entries.index"));
  if (!index.is_ok()) return false;
  const IndexHead head = (*index)->head();
  if (expected != nullptr && head.mark != *expected) return false;
  // It has no summaries for records that its writer was too old to read; perhaps this Purlin is
  // not.
  if (head.newer > 0) return false;
  if (!log_.resume(head.mark)) return false;
  record_set_.adopt(std::move(index).value());
  unreadable_ = head.unreadable;
  newer_ = head.newer;
  unindexed_ = 0;
  return true;
}

Status Store::write_index() {
  // Under the lock: a rewrite removes the index first, and none of the old log may come after it.
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(log_.path() + ".lock"));
  PURLIN_ASSIGN(const LogMark mark, log_.mark());
  // An index must not outlive what it names.
  PURLIN_TRY(log_.sync_file());
  PURLIN_TRY(save_lost());
  PURLIN_TRY(write_atomic(join_path(directory_, "entries.index"),
                          record_set_.encode({mark, unreadable_, newer_})));
  // Another writer may have put an older one in its place since; that would take back what is
  // known.
  unindexed_ = 0;
  adopt_index(&mark);
  return Status::ok();
}

// Summaries that wait for an index take several times the memory of those in one.
void Store::fold() {
  const std::size_t all = record_set_.entries() + record_set_.statuses();
  if (record_set_.pending() < kFoldAt || record_set_.pending() * 2 < all) return;
  if (auto index = SummaryIndex::parse(record_set_.encode({})); index.is_ok())
    record_set_.adopt(std::move(index).value());
}

void Store::visit(const Record& record, Parsing& parsing) {
  if (record.kind != kind_number(RecordKind::kEntry) &&
      record.kind != kind_number(RecordKind::kStatus)) {
    ++newer_;
    return;
  }
  if (const Status taken = take(record, parsing); !taken.is_ok())
    ++(taken.code() == Code::kCorrupt ? newer_ : unreadable_);
  ++unindexed_;
  fold();
}

void Store::restart() {
  record_set_.clear();
  changes_.clear();
  lost_.clear();
  unreadable_ = newer_ = unindexed_ = 0;
  ++generation_;
}

Status Store::refresh() {
  Parsing parsing;
  const std::uint64_t before = generation_;
  PURLIN_TRY(
      log_.poll([&](const Record& record) { visit(record, parsing); }, [this] { restart(); }));
  if (generation_ != before) keep_lost(lost_records::load(directory_));
  return Status::ok();
}

std::vector<LostRecord> Store::named() const {
  std::vector<LostRecord> all = lost_;
  const auto take = [&](const auto& summary) {
    all.push_back({summary.record.hex(), summary.offset});
  };
  record_set_.each_entry(take);
  record_set_.each_status(take);
  return all;
}

// Of the records that were named, those that are not here.
void Store::keep_lost(std::vector<LostRecord> named) {
  std::unordered_set<std::string> taken;
  for (const LostRecord& lost : lost_) taken.insert(lost.record);
  for (LostRecord& record : named)
    if (!has(record.record) && taken.insert(record.record).second)
      lost_.push_back(std::move(record));
  std::erase_if(lost_, [this](const LostRecord& lost) { return has(lost.record); });
  std::sort(lost_.begin(), lost_.end(), [](const LostRecord& a, const LostRecord& b) {
    return std::tie(a.offset, a.record) < std::tie(b.offset, b.record);
  });
}

// An index that does not fit the log tells what the log held. If the log was rewritten, its index
// went first: one that is still there after the log was read is no remainder.
Status Store::note_lost() {
  while (true) {
    const Result<std::shared_ptr<const SummaryIndex>> index =
        SummaryIndex::map(join_path(directory_, "entries.index"));
    if (!index.is_ok()) return Status::ok();
    const std::uint64_t seen = generation_;
    PURLIN_TRY(refresh());  // it may name records that were appended since
    if (seen != generation_) continue;
    std::vector<LostRecord> named;
    const auto take = [&](const auto& summary) {
      named.push_back({summary.record.hex(), summary.offset});
    };
    std::for_each((*index)->entries().begin(), (*index)->entries().end(), take);
    std::for_each((*index)->statuses().begin(), (*index)->statuses().end(), take);
    keep_lost(std::move(named));
    return Status::ok();
  }
}

// For after a new index, which names them no more.
Status Store::save_lost() const {
  return lost_.empty() ? Status::ok() : lost_records::save(directory_, lost_);
}

Status Store::forget_lost() {
  lost_.clear();
  return lost_records::remove(directory_);
}

Status Store::read_all() {
  std::vector<LostRecord> before = named();
  restart();
  log_ = RecordLog(log_.path());
  PURLIN_TRY(refresh());
  keep_lost(std::move(before));
  return Status::ok();
}

Status Store::examine() {
  for (std::uint64_t seen = generation_ + 1; seen != generation_;) {
    PURLIN_TRY(refresh());
    seen = generation_;
    std::unordered_set<std::uint64_t> whole;
    RecordLog log(log_.path());
    PURLIN_TRY(log.poll([&](const Record& record) { whole.insert(record.offset); },
                        [&] { whole.clear(); }));
    PURLIN_TRY(refresh());
    if (seen != generation_) continue;  // replaced meanwhile
    const std::vector<LostRecord> all = named();
    if (std::any_of(all.begin() + static_cast<std::ptrdiff_t>(lost_.size()), all.end(),
                    [&](const LostRecord& one) { return whole.count(one.offset) == 0; })) {
      PURLIN_TRY(read_all());
      seen = generation_;
    }
  }
  return Status::ok();
}

Status Store::reread() {
  PURLIN_TRY(read_all());
  // An index that lists what was lost would keep it from being taken in again.
  if (file_exists(join_path(directory_, "entries.index"))) (void)write_index().is_ok();
  return Status::ok();
}

Status Store::append(const std::function<std::string()>& encode) {
  Parsing parsing;
  const auto take = [&](const Record& record) { visit(record, parsing); };
  PURLIN_TRY(log_.append(encode, take, [this] { restart(); })
                 .with_context(fmt::format("the cache in '{}'", directory_)));
  const std::size_t all = record_set_.entries() + record_set_.statuses();
  // An old index names lost records at places where they are not: a new one finds those that came
  // back.
  const std::size_t lost = lost_.size();
  keep_lost({});
  if (lost_.size() == lost && (unindexed_ < kIndexAt || unindexed_ * 8 < all)) return Status::ok();
  // The records are safe; without an index the next to open is slower, no more.
  if (!write_index().is_ok()) unindexed_ = 0;
  return Status::ok();
}

Status Store::check_writable() {
  PURLIN_TRY(cache_quota().status());
  return log_.check_writable().with_context(fmt::format("the cache in '{}'", directory_));
}

// Clocks of two hosts differ: a status that is written later must have a later time.
void Store::date(EntryStatus* status) const {
  const StatusSummary* latest = record_set_.standing(Id128::parse(status->record));
  if (latest != nullptr && latest->at_ns >= status->at_ns())
    status->at = format_rfc3339_ns(latest->at_ns + 1);
}

Result<Put> Store::put(const Entry& entry, const PutOptions& options) {
  PURLIN_ASSIGN(const std::uint64_t quota, cache_quota());
  const CacheRecord record = make_record(entry);
  // What cannot be read back must not be acknowledged.
  if (const Status readable = check_record(record); !readable.is_ok())
    return readable.with_context("the entry cannot be stored");
  const Id128 id = Id128::parse(record.id);
  const EntrySummary summary = summary_of(entry, id, 0);
  Put put;
  put.record = record.id;
  put.directory = directory_;
  const auto encode = [&] {
    put.known = record_set_.has(id);
    std::string bytes;
    if (!put.known) bytes = encode_record(kind_number(record.kind), record.payload);
    if (!options.replace) return bytes;
    const auto append_status = [&](const std::string& of, EntryState state,
                                   const std::string& reason) {
      EntryStatus status = new_status(of, state, reason);
      date(&status);
      bytes += encode_record(kind_number(RecordKind::kStatus), make_record(status).payload);
    };
    record_set_.each_of_key(summary.group, summary.key, [&](const EntrySummary& other) {
      if (other.record != id && better(other, summary) && record_set_.served(other.record))
        append_status(other.record.hex(), EntryState::kDemoted,
                      fmt::format("replaced by {}{}", record.id,
                                  options.reason.empty() ? "" : ": " + options.reason));
    });
    if (put.known && !record_set_.served(id))
      append_status(record.id, EntryState::kActive, "put again, to replace others");
    return bytes;
  };
  PURLIN_TRY(append(encode));
  const EntrySummary* best = nullptr;
  record_set_.each_of_key(summary.group, summary.key, [&](const EntrySummary& other) {
    if (record_set_.served(other.record) && (best == nullptr || better(other, *best)))
      best = &other;
  });
  put.served = best != nullptr && best->record == id;
  if (!put.served && best != nullptr) put.kept = best->record.hex();
  // It is stored: a quota that cannot be held now is held by the next write.
  if (!put.known) (void)hold_quota(*this, quota, id).is_ok();
  return put;
}

Status Store::set_status(EntryStatus status) {
  PURLIN_TRY(refresh());
  const Id128 target = Id128::parse(status.record);
  if (record_set_.entry(target) == nullptr)
    return error(Code::kNotFound, "the cache in '{}' has no entry record '{}'", directory_,
                 status.record);
  PURLIN_TRY(status_from_json(to_json(status)).status());
  return append([&] {
    date(&status);
    return encode_record(kind_number(RecordKind::kStatus), make_record(status).payload);
  });
}

Result<Absorbed> Store::absorb(std::span<const CacheRecord> records) {
  PURLIN_ASSIGN(const std::uint64_t quota, cache_quota());
  Absorbed result;
  std::vector<const CacheRecord*> good;
  for (const CacheRecord& record : records) {
    const Status status = check_record(record);
    if (status.is_ok()) {
      good.push_back(&record);
      continue;
    }
    ++result.refused;
    if (result.reasons.size() < kMaxReasons)
      result.reasons.push_back(fmt::format("record {}: {}", record.id, status.message()));
  }
  for (std::size_t next = 0; next < good.size();) {
    std::size_t added = 0, known = 0;
    PURLIN_TRY(append([&] {
      std::string bytes;
      std::unordered_set<Id128, Id128Hash> batch;
      for (; next < good.size() && bytes.size() < kAppendBytes; ++next) {
        const Id128 id = Id128::parse(good[next]->id);
        if (record_set_.has(id) || !batch.insert(id).second) {
          ++known;
          continue;
        }
        bytes += encode_record(kind_number(good[next]->kind), good[next]->payload);
        ++added;
      }
      return bytes;
    }));
    result.added += added;
    result.known += known;
  }
  if (result.added > 0) (void)hold_quota(*this, quota, {}).is_ok();
  return result;
}

Status Store::rewrite(const std::function<bool(const CacheRecord&)>& keep) {
  const auto keep_record = [&](const Record& record) {
    const Result<Json> json = Json::parse(record.payload);
    const bool ours = record.kind == kind_number(RecordKind::kEntry) ||
                      record.kind == kind_number(RecordKind::kStatus);
    if (!ours || !json.is_ok()) return ours == false;  // a newer Purlin's stay
    return keep(
        {static_cast<RecordKind>(record.kind), record_id(*json), std::string(record.payload)});
  };
  PURLIN_TRY(examine());  // the next file does not show what this one lost
  const std::string index = join_path(directory_, "entries.index");
  // An index of another log would name lost records: it goes first, and durably.
  const auto before_replace = [&] {
    PURLIN_TRY(save_lost());
    PURLIN_TRY(remove_file(index));
    return sync_folder(directory_);
  };
  PURLIN_TRY(log_.rewrite(keep_record, before_replace)
                 .with_context(fmt::format("the cache in '{}'", directory_)));
  PURLIN_TRY(refresh());
  if (record_set_.entries() + record_set_.statuses() < kIndexAt) return Status::ok();
  return write_index();
}

Result<Json> Store::read_json(std::uint64_t offset, const Id128& record) const {
  PURLIN_ASSIGN(const std::string payload, log_.read_at(offset));
  return checked_json(payload, record, log_.path(), offset);
}

Result<Entry> Store::read(const EntrySummary& summary) const {
  ConstraintCache constraints;
  return EntryReader(log_.path(), EntryParts::kAll, constraints).read(summary);
}

Result<EntryStatus> Store::read(const StatusSummary& summary) const {
  PURLIN_ASSIGN(const Json json, read_json(summary.offset, summary.record));
  return status_from_json(json);
}

Result<StoredEntry> Store::stored(const EntrySummary& summary, EntryReader* reader) const {
  StoredEntry stored;
  PURLIN_ASSIGN(stored.entry, reader == nullptr ? read(summary) : reader->read(summary));
  stored.record = summary.record.hex();
  if (const StatusSummary* latest = record_set_.standing(summary.record))
    stored.state = latest->entry_state();
  stored.statuses = statuses(summary.record);
  return stored;
}

std::vector<EntryStatus> Store::statuses(const Id128& record) const {
  std::vector<const StatusSummary*> summaries;
  record_set_.each_status_of(record,
                             [&](const StatusSummary& summary) { summaries.push_back(&summary); });
  std::sort(summaries.begin(), summaries.end(), [](const StatusSummary* a, const StatusSummary* b) {
    return std::tie(a->at_ns, a->record) < std::tie(b->at_ns, b->record);
  });
  std::vector<EntryStatus> all;
  for (const StatusSummary* summary : summaries)
    if (Result<EntryStatus> status = read(*summary); status.is_ok())
      all.push_back(std::move(status).value());
  return all;
}

Lookup Store::get(const CacheKey& key, const ProblemShape& problem,
                  const LookupOptions& options) const {
  std::set<std::string> damaged;
  const auto noting = [&](const auto& summary) {
    auto record = read(summary);
    if (!record.is_ok()) damaged.insert(summary.record.hex());
    return record;
  };
  Lookup lookup =
      look_up({record_set_, [&](const EntrySummary& summary) { return noting(summary); },
               [&](const StatusSummary& summary) { return noting(summary); }},
              key, problem, options);
  lookup.damaged.assign(damaged.begin(), damaged.end());
  if (record_set_.entries() == 0)
    lookup.explain.push_back(fmt::format("the cache in '{}' is empty", directory_));
  lookup.layer = directory_;
  return lookup;
}

std::vector<StoredEntry> Store::served(std::uint64_t group, const Id128& key,
                                       const std::function<bool(const Id128& record)>& is_served,
                                       EntryReader* reader) const {
  std::vector<const EntrySummary*> summaries;
  record_set_.each_of_key(group, key, [&](const EntrySummary& summary) {
    if (is_served ? is_served(summary.record) : record_set_.served(summary.record))
      summaries.push_back(&summary);
  });
  std::sort(summaries.begin(), summaries.end(),
            [](const auto* a, const auto* b) { return better(*a, *b); });
  std::vector<StoredEntry> all;
  for (const EntrySummary* summary : summaries) {
    Result<StoredEntry> entry = stored(*summary, reader);
    if (entry.is_ok()) all.push_back(std::move(entry).value());
  }
  return all;
}

std::vector<StoredEntry> Store::current() const {
  std::unordered_map<Id128, const EntrySummary*, Id128Hash> best;
  record_set_.each_entry([&](const EntrySummary& summary) {
    if (!record_set_.served(summary.record)) return;
    const EntrySummary*& held = best[summary.key];
    if (held == nullptr || better(summary, *held)) held = &summary;
  });
  std::vector<StoredEntry> all;
  for (const auto& [key, summary] : best) {
    Result<StoredEntry> entry = stored(*summary);
    if (entry.is_ok()) {
      all.push_back(std::move(entry).value());
      continue;
    }
    // Its record was damaged since: the next best stands in.
    std::vector<StoredEntry> others = served(summary->group, key);
    if (!others.empty()) all.push_back(std::move(others.front()));
  }
  const auto order = [](const StoredEntry& stored) {
    const CacheKey& key = stored.entry.key;
    return std::tie(key.op, key.kernel, key.backend, key.arch, key.bucket, key.device, key.toolkit,
                    key.driver, key.source_hash, key.policy, key.dtype);
  };
  std::sort(all.begin(), all.end(),
            [&](const StoredEntry& a, const StoredEntry& b) { return order(a) < order(b); });
  return all;
}

std::vector<Entry> Store::list() const {
  std::vector<Entry> all;
  for (StoredEntry& stored : current()) all.push_back(std::move(stored.entry));
  return all;
}

Result<std::vector<StoredEntry>> Store::history(const CacheKey& key) const {
  std::vector<const EntrySummary*> summaries;
  record_set_.each_of_key(group_of(key), Id128::parse(key.id()),
                          [&](const EntrySummary& summary) { summaries.push_back(&summary); });
  std::sort(summaries.begin(), summaries.end(), [](const EntrySummary* a, const EntrySummary* b) {
    return std::tie(a->recorded_ns, a->offset) < std::tie(b->recorded_ns, b->offset);
  });
  std::vector<StoredEntry> all;
  for (const EntrySummary* summary : summaries) {
    PURLIN_ASSIGN(StoredEntry entry, stored(*summary));
    all.push_back(std::move(entry));
  }
  return all;
}

Result<CacheRecord> Store::record(std::string_view id) const {
  const Id128 wanted = Id128::parse(id);
  const EntrySummary* entry = record_set_.entry(wanted);
  const StatusSummary* status = entry == nullptr ? record_set_.status(wanted) : nullptr;
  if (entry == nullptr && status == nullptr)
    return error(Code::kNotFound, "the cache in '{}' has no record '{}'", directory_, id);
  const std::uint64_t offset = entry != nullptr ? entry->offset : status->offset;
  PURLIN_TRY(read_json(offset, wanted).status());
  PURLIN_ASSIGN(std::string payload, log_.read_at(offset));
  return CacheRecord{entry != nullptr ? RecordKind::kEntry : RecordKind::kStatus, wanted.hex(),
                     std::move(payload)};
}

Status Store::each_record(const RecordFilter& filter,
                          const std::function<bool(const CacheRecord&)>& visit) const {
  const FieldHashes wanted = field_hashes(filter.key);
  const bool all_keys = filter.key == CacheKey();
  struct Item {
    std::uint64_t offset;
    RecordKind kind;
    Id128 id;
  };
  std::vector<Item> items;
  if (filter.entries)
    record_set_.each_entry([&](const EntrySummary& summary) {
      if (passes(wanted, summary.fields))
        items.push_back({summary.offset, RecordKind::kEntry, summary.record});
    });
  if (filter.statuses)
    record_set_.each_status([&](const StatusSummary& summary) {
      const EntrySummary* about = record_set_.entry(summary.target);
      if (all_keys || (about != nullptr && passes(wanted, about->fields)))
        items.push_back({summary.offset, RecordKind::kStatus, summary.record});
    });
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.offset < b.offset; });
  for (const Item& item : items) {
    const Result<Json> json = read_json(item.offset, item.id);
    if (!json.is_ok()) continue;  // damaged since it was read
    if (!all_keys && item.kind == RecordKind::kEntry) {
      const Result<Entry> entry = entry_from_json(*json);
      if (!entry.is_ok() || !passes(filter.key, entry->key)) continue;
    }
    if (!visit({item.kind, item.id.hex(), json->dump()})) break;
  }
  return Status::ok();
}

Result<std::vector<CacheRecord>> Store::records(const RecordFilter& filter) const {
  std::vector<CacheRecord> all;
  PURLIN_TRY(each_record(filter, [&](const CacheRecord& record) {
    all.push_back(record);
    return true;
  }));
  return all;
}

}  // namespace purlin::cache
