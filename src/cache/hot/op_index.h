// SPDX-License-Identifier: Apache-2.0
// OpIndex: the entries of one op on one device, for the hot path of a program.
//
// find() is wait-free and allocation-free. It first asks a memo (16 KiB to 2 MiB) of the answers
// for these extents since the last change. Else it applies the bucket rules that entries carry,
// hashes, and probes a table. One writer at a time calls update(), while any number of threads call
// find(). An entry that find() returned lives as long as the OpIndex. Outgrown tables and memos are
// kept too, which at most doubles the memory. Withdrawals and replacements change slots in place,
// and an entry that comes back is the same object. Memory therefore grows with the number of
// distinct entries; repeated withdrawals add none.
#pragma once

#include "cache/entry/shape_check.h"
#include "cache/hot/lookup_memo.h"
#include "cache/store/store.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::cache {

using Extents = std::array<std::int64_t, kMaxDimensions>;  // unused ones are 0

// An entry as programs see it. Immutable once published.
struct IndexedEntry {
  Config config;
  std::string options;  // "-DBM=64 -DBN=32"
  std::string id;       // of the key
  std::string record;   // of the entry's record: what a status is about
  ProblemShape problem;
  double time_ms = 0, default_time_ms = 0, runner_up_ms = 0;
  Config default_config, runner_up;  // empty where not known
  bool verified = false;

  Match match = Match::kSame;
  bool other_model = false;  // where match is kTransferable: of another device model
  int distance = 0;
  std::string recorded_at;
  bool for_bucket = true;  // else for the measured shape alone
  Extents measured{}, bucket{};
  std::size_t rules = 0;                // which of the index's rule sets
  std::optional<IntegerProgram> check;  // nullopt: served at the measured shape alone
  std::size_t layer = 0;                // 0 is the uppermost
  std::string directory;                // of that layer
  // The next layer's entry for the bucket, for shapes at which this one is not valid.
  const IndexedEntry* below = nullptr;

  // Whether it is to be preferred to `other` in a bucket of both.
  bool beats(const IndexedEntry& other) const;
  bool same_as(const IndexedEntry& other) const;  // an entry of the same record in the same place
};

class OpIndex {
 public:
  struct Hit {
    Outcome outcome = Outcome::kMiss;
    std::uint32_t epoch = 0;  // for learn(): the epoch of the computation; 0: from the memo
    const IndexedEntry* entry = nullptr;
  };

  // `wanted` states the fields that must match; its bucket is ignored. `dimensions` (at most
  // kMaxDimensions) is the order of the extents given to find().
  OpIndex(CacheKey wanted, std::vector<std::string> dimensions, bool allow_transferred);
  ~OpIndex();
  OpIndex(const OpIndex&) = delete;
  OpIndex& operator=(const OpIndex&) = delete;

  // Takes in what the layers, upper first, got since the last update.
  void update(std::span<const Store> layers);
  void update(const Store& store) { update(std::span(&store, 1)); }
  // [MT]
  Hit find(const std::int64_t* extents) const noexcept { return finder_(*this, extents); }
  // [MT] For a few of many hits, at random: remembers the answer, also in place of another shape's,
  // and whether the memo had it. Where it seldom has, as of shapes drawn from a million, find()
  // asks the table alone until it would.
  void learn(const std::int64_t* extents, const Hit& hit) const noexcept;
  // [MT] Begins to bring what find() will read into the processor's caches; waits for nothing.
  void prefetch(const std::int64_t* extents) const noexcept;

  const std::vector<std::string>& dimensions() const { return dimensions_; }
  std::size_t dimension_count() const noexcept { return dimension_count_; }
  std::size_t size() const { return size_; }
  // What memory is spent on: entries ever published, and bytes of tables.
  std::size_t published() const { return entries_.size(); }
  std::size_t table_bytes() const;

 private:
  struct Slot;
  struct Table;
  struct Place {
    Slot* slot;
    const IndexedEntry* held;  // by it; nullptr in an empty one
  };
  struct Found {
    const IndexedEntry* entry = nullptr;
    bool exact = false, transferred = false;
  };
  using RuleSet = std::array<BucketRule, kMaxDimensions>;
  static constexpr std::size_t kMaxRuleSets = 16;
  static constexpr int kMaxMemoScore = 16;

  using Live = std::vector<const IndexedEntry*>;  // of one key: the one for its bucket first
  std::vector<Id128> changed_keys(std::span<const Store> layers);
  // What an update reads entries with.
  struct Reading;
  Live index_key(std::span<const Store> layers, const Id128& key, Reading& reading);
  std::unique_ptr<IndexedEntry> make(const StoredEntry& stored, bool at_its_shape_only,
                                     ConstraintCache& constraints);
  const IndexedEntry* publish(std::unique_ptr<IndexedEntry> made);
  std::size_t rule_set(const Entry& entry, bool exact);
  void insert(const IndexedEntry* entry);
  void withdraw(const std::vector<const IndexedEntry*>& entries);
  void write(Slot& slot, const IndexedEntry& entry);
  // In the newest table.
  Place place_of(const IndexedEntry& entry) const;
  void grow(std::size_t more);  // entries, at least
  void grow_memo();
  // The hot path, once for each number of dimensions, so that its loops are unrolled.
  using Finder = Hit (*)(const OpIndex&, const std::int64_t*) noexcept;
  static Finder finder_for(std::size_t dimensions);
  template <std::size_t D>
  [[gnu::hot]] static Hit find_in(const OpIndex& index, const std::int64_t* extents) noexcept;
  template <std::size_t D>
  Hit find_in_table(const std::int64_t* extents, const AnswerLines* memo,
                    std::uint32_t epoch) const noexcept;
  template <std::size_t D>
  void prefetch_in(const std::int64_t* extents) const noexcept;
  // What is served under one rule set.
  template <std::size_t D>
  Found found_under(const Table& table, std::size_t rules,
                    const std::int64_t* extents) const noexcept;
  // The best of several.
  template <std::size_t D>
  Found found_under_any(const Table& table, std::size_t first, std::size_t end,
                        const std::int64_t* extents) const noexcept;
  // The bucket under a rule set; false if the extents have none.
  template <std::size_t D>
  bool bucket_at(std::size_t rules, const std::int64_t* extents,
                 std::int64_t* bucket) const noexcept;
  // The slot of that bucket, or the empty one where it would be.
  template <std::size_t D>
  static Place probe(const Table& table, const std::int64_t* bucket, std::size_t rules) noexcept;
  // The entry, or one below it, that is valid at the shape.
  Found standing_in(const IndexedEntry* entry, const std::int64_t* extents) const noexcept;

  // From here on: all that find() reads to return a remembered answer, except the answer itself. It
  // lies in one line of the processor's caches.
  // The epoch of answers. update() raises it before it changes them, to an odd number, and again at
  // its end.
  alignas(64) std::atomic<std::uint32_t> epoch_{2};
  mutable std::atomic<bool> memo_pays_{true};
  std::atomic<bool> exact_used_{false};  // whether an entry is under the first rule set
  std::atomic<AnswerLines> memo_;
  const Finder finder_;
  const std::size_t dimension_count_;
  std::atomic<const Table*> table_{nullptr};
  std::atomic<std::size_t> rule_count_{1};
  mutable std::atomic<int> memo_score_{kMaxMemoScore};  // which learn() moves by one
  // The others.
  const CacheKey wanted_;
  const std::uint64_t group_;
  const std::vector<std::string> dimensions_;
  const bool allow_transferred_;
  std::array<RuleSet, kMaxRuleSets> rule_sets_;  // the first is exact; published by rule_count_
  // The writer's.
  std::vector<std::unique_ptr<Table>> tables_;          // the last one is current
  std::vector<std::unique_ptr<LookupMemo>> memos_;      // here, too
  std::vector<std::unique_ptr<IndexedEntry>> entries_;  // every one ever published
  std::unordered_map<Id128, std::vector<const IndexedEntry*>, Id128Hash> of_record_;  // the same
  std::unordered_map<Id128, Live, Id128Hash> live_;
  IndexedEntry nobody_;   // stands in the slots of withdrawn entries, for no shape
  std::size_t size_ = 0;  // slots in use
  struct Followed {
    std::string directory;
    std::uint64_t generation = 0;
    std::size_t seen = 0;  // of the store's changes
    bool operator==(const Followed&) const = default;
  };
  std::vector<Followed> followed_;
};

}  // namespace purlin::cache
