// SPDX-License-Identifier: Apache-2.0
// Store: the config cache in a local directory: a set of records that only grows.
//
// One append-only file, entries.log (cache/store/record_log.h), and an index next to it that is
// derived from it and may be missing (cache/store/summary_index.h). The entry served for a key
// follows from the set of its records (docs/formats/cache.md), so stores merge by union. Writers of
// any number of processes append under a file lock and sync before they return; readers take no
// lock, write nothing and see whole records only. A directory that does not exist is an empty
// cache. Thread-safety: a Store belongs to one thread; several may be open on one directory, in any
// process. Failure: kIo from the system, kCorrupt for a file that is not ours or newer.
#pragma once

#include "base/status.h"
#include "cache/store/cache_record.h"
#include "cache/store/entry_reader.h"
#include "cache/store/lookup.h"
#include "cache/store/record_log.h"
#include "cache/store/record_set.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::cache {

// An entry as it stands in a store.
struct StoredEntry {
  Entry entry;
  std::string record;  // its record's id
  EntryState state = EntryState::kActive;
  std::vector<EntryStatus> statuses;  // all about it, oldest first

  // Whether it was checked again under the toolkit and driver that `wanted` states, and only they
  // differ from its own.
  bool validated(const CacheKey& wanted) const;
};

struct PutOptions {
  // Serve it although a better one is known: that one is demoted, with `reason`.
  bool replace = false;
  std::string reason;
};
struct Put {
  std::string record;  // the id it has
  bool known = false;  // it was there already
  bool served = true;  // whether lookups of its key now get it
  std::string kept;    // where not: the record they get
  std::string directory;
};

// What to export. Empty members take anything.
struct RecordFilter {
  CacheKey key;                          // its non-empty fields are compared
  bool entries = true, statuses = true;  // statuses of the entries that pass
};

struct Absorbed {
  std::size_t added = 0, known = 0, refused = 0;
  std::vector<std::string> reasons;  // for the first refusals
};

// A record that an index named and that the log does not hold whole any more.
struct LostRecord {
  std::string record;
  std::uint64_t offset = 0;  // where it was
};

class Store {
 public:
  // Reads what is there and writes nothing.
  static Result<Store> open(const std::string& directory);
  // PURLIN_CACHE, else the user's cache directory + "/configs".
  static std::string default_directory();

  // Durable once it returns ok. Creates the directory if need be. kInvalid for an entry that could
  // not be read back.
  Result<Put> put(const Entry& entry, const PutOptions& options = {});
  // kNotFound where the store has no such entry record. The time is moved past what is known.
  Status set_status(EntryStatus status);
  // Takes in records from elsewhere; those known already count as such. Idempotent; durable once
  // ok.
  Result<Absorbed> absorb(std::span<const CacheRecord> records);
  // Ok when put could work; creates the directory. Worth asking before hours of tuning.
  Status check_writable();
  // Rewrites the file with the records `keep` wants and without damage. Other processes go on.
  Status rewrite(const std::function<bool(const CacheRecord&)>& keep);

  // `problem` tells an exact hit from a bucket hit.
  Lookup get(const CacheKey& key, const ProblemShape& problem,
             const LookupOptions& options = {}) const;
  // The entry served of every key, ordered by op, kernel, backend, arch, bucket.
  std::vector<Entry> list() const;
  // The same with its record; and of one key, the one served first, then the others, best first.
  std::vector<StoredEntry> current() const;
  // `is_served`: where more than this store's own statuses decide that. `reader`: of this store's
  // log, where many keys are asked for.
  std::vector<StoredEntry> served(std::uint64_t group, const Id128& key,
                                  const std::function<bool(const Id128& record)>& is_served = {},
                                  EntryReader* reader = nullptr) const;
  // All about an entry record, oldest first; also of one that is not here.
  std::vector<EntryStatus> statuses(const Id128& record) const;
  // Every entry stored under a key, in any state, oldest first.
  Result<std::vector<StoredEntry>> history(const CacheKey& key) const;

  bool has(std::string_view record) const { return record_set_.has(Id128::parse(record)); }
  Result<CacheRecord> record(std::string_view id) const;
  // In the order of the file. The visitor returns false to stop.
  Status each_record(const RecordFilter& filter,
                     const std::function<bool(const CacheRecord&)>& visit) const;
  Result<std::vector<CacheRecord>> records(const RecordFilter& filter = {}) const;

  // Writes the index, so that the next open reads no record. Writers do so now and then. A failure
  // makes the next open slower and has no other effect.
  Status write_index();

  // Compares the index with every byte of the log: an index would hide damage that came after it.
  // Then lost(), damaged() and the known records match the log. Writes nothing.
  Status examine();
  // Reads every record again, with or without an index, and writes the lost ones and a new index.
  Status reread();
  // Forgets which records were lost; after a rewrite, nothing names them any more.
  Status forget_lost();
  // Rereads what other processes appended since.
  Status refresh();

  const std::string& directory() const { return directory_; }
  const std::string& log_path() const { return log_.path(); }
  const RecordSet& record_set() const { return record_set_; }
  // Keys whose records changed, in that order, since `generation` began: a new one begins when the
  // file was found replaced. changes().size() is how far a follower has read.
  struct Change {
    std::uint64_t group = 0;
    Id128 key;
    // The entry record of a status whose entry is not here but may be in another layer; group and
    // key are then 0.
    Id128 about{};
  };
  const std::vector<Change>& changes() const { return changes_; }
  std::uint64_t generation() const { return generation_; }
  // Records that failed their checksum or could not be read, and were skipped. Where an index is
  // in use, only examine() finds those of the part that it covers.
  std::size_t damaged() const { return std::max(log_.damaged(), lost_.size()) + unreadable_; }
  // Those of them that an index names, by their place.
  const std::vector<LostRecord>& lost() const { return lost_; }
  // Records of a newer Purlin, skipped.
  std::size_t newer() const { return newer_; }

 private:
  explicit Store(std::string directory);
  struct Parsing;
  void visit(const Record& record, Parsing& parsing);
  Status take(const Record& record, Parsing& parsing);
  void take(const Entry& entry, const Id128& id, std::uint64_t offset);
  void restart();
  bool adopt_index(const LogMark* expected = nullptr);
  Status read_all();
  std::vector<LostRecord> named() const;
  void keep_lost(std::vector<LostRecord> named);
  Status note_lost();
  Status save_lost() const;
  void date(EntryStatus* status) const;
  void fold();
  Status append(const std::function<std::string()>& encode);
  Result<Json> read_json(std::uint64_t offset, const Id128& record) const;
  Result<Entry> read(const EntrySummary& summary) const;
  Result<EntryStatus> read(const StatusSummary& summary) const;
  Result<StoredEntry> stored(const EntrySummary& summary, EntryReader* reader = nullptr) const;

  std::string directory_;
  RecordLog log_;
  RecordSet record_set_;
  std::vector<Change> changes_;
  std::uint64_t generation_ = 0;
  std::vector<LostRecord> lost_;
  std::size_t unreadable_ = 0, newer_ = 0;
  std::size_t unindexed_ = 0;  // records read that the index file does not cover
};

}  // namespace purlin::cache
