// SPDX-License-Identifier: Apache-2.0
#include "cache/op_index.h"

#include "base/text.h"
#include "gpu/launching.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <tuple>

namespace purlin::cache {

namespace {

constexpr std::size_t kCacheLine = 64, kHugePage = std::size_t{2} << 20;

// What find() must know of an entry besides its bucket, in one word: six bits for each dimension,
// of which so many low bits of the extent must be 0, and what is below.
constexpr std::uint64_t kOnlyAsMeasured = std::uint64_t{1} << 60;  // no check could be compiled
constexpr std::uint64_t kMoreToCheck = std::uint64_t{1} << 61;     // the entry's own check decides
constexpr std::uint64_t kTransferred = std::uint64_t{1} << 62;

std::uint64_t terms_of(const IndexedEntry& entry) {
  std::uint64_t terms = entry.match == Match::kSame ? 0 : kTransferred;
  if (!entry.check) return terms | kOnlyAsMeasured;
  if (entry.check->rest()) terms |= kMoreToCheck;
  for (std::size_t i = 0; i < kMaxDimensions; ++i)
    terms |= static_cast<std::uint64_t>(entry.check->zero_bits()[i]) << (6 * i);
  return terms;
}

}  // namespace

// Open addressing with linear probing over slots of one cache line (two, for more than four
// dimensions), so that a lookup in a large table misses the processor's caches once. A slot's
// bucket is written before its entry is published and never again; entry, terms and measured change
// together when a better entry comes, which `version` tells: odd while they do.
struct OpIndex::Slot {
  std::atomic<const IndexedEntry*> entry{nullptr};
  std::atomic<std::uint64_t> terms{0}, measured{0};  // the latter a hash of the measured shape
  std::atomic<std::uint32_t> version{0};
  std::uint32_t rules = 0;

  std::int64_t* bucket() { return reinterpret_cast<std::int64_t*>(this + 1); }  // by dimension
};

struct OpIndex::Table {
  Table(std::size_t count, std::size_t dimensions)
      : mask(count - 1),
        stride((sizeof(Slot) + dimensions * sizeof(std::int64_t) + kCacheLine - 1) / kCacheLine *
               kCacheLine) {
    const std::size_t page = count * stride >= kHugePage ? kHugePage : kCacheLine;
    bytes = (count * stride + page - 1) / page * page;
    memory = static_cast<char*>(std::aligned_alloc(page, bytes));
    if (memory == nullptr) throw std::bad_alloc();
    if (page == kHugePage) ::madvise(memory, bytes, MADV_HUGEPAGE);
    std::memset(memory, 0, bytes);
    for (std::size_t i = 0; i < count; ++i) new (memory + i * stride) Slot;
  }
  ~Table() { std::free(memory); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  std::size_t size() const { return mask + 1; }
  Slot& at(std::size_t i) const { return *reinterpret_cast<Slot*>(memory + i * stride); }

  const std::size_t mask, stride;
  std::size_t bytes = 0;
  char* memory = nullptr;
};

bool IndexedEntry::beats(const IndexedEntry& other) const {
  return std::tie(match, distance, other.recorded_at, record) <
         std::tie(other.match, other.distance, recorded_at, other.record);
}

OpIndex::OpIndex(CacheKey wanted, std::vector<std::string> dimensions, bool allow_transferred)
    : wanted_(std::move(wanted)),
      dimensions_(std::move(dimensions)),
      allow_transferred_(allow_transferred) {
  tables_.push_back(std::make_unique<Table>(16, dimensions_.size()));
  table_.store(tables_.back().get(), std::memory_order_release);
}

OpIndex::~OpIndex() = default;

std::uint64_t OpIndex::hash(const std::int64_t* extents, std::size_t rules) const noexcept {
  // A multiply-xorshift chain: each extent is spread over all bits before the next comes in.
  std::uint64_t h = 0x9E3779B97F4A7C15u * (rules + 1);
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    h = (h ^ static_cast<std::uint64_t>(extents[i])) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

OpIndex::Slot* OpIndex::probe(const Table& table, const Extents& bucket, std::size_t rules,
                              const IndexedEntry** held) const noexcept {
  // The table is never full, so the walk ends.
  for (std::size_t at = hash(bucket.data(), rules) & table.mask;; at = (at + 1) & table.mask) {
    Slot& slot = table.at(at);
    *held = slot.entry.load(std::memory_order_acquire);
    if (*held == nullptr) return &slot;
    bool same = slot.rules == rules;
    for (std::size_t i = 0; i < dimensions_.size(); ++i)
      same = same && slot.bucket()[i] == bucket[i];
    if (same) return &slot;
  }
}

bool OpIndex::stands_for(const IndexedEntry& entry, const std::int64_t* extents,
                         bool* exact) const noexcept {
  *exact = std::equal(extents, extents + dimensions_.size(), entry.measured.begin());
  return *exact || (entry.check && entry.check->holds(extents));
}

OpIndex::Hit OpIndex::find(const std::int64_t* extents) const noexcept {
  Hit hit;
  bool hit_exact = false, hit_transferred = false;
  const Table& table = *table_.load(std::memory_order_acquire);
  const std::size_t count = rule_count_.load(std::memory_order_acquire);
  const std::size_t dimensions = dimensions_.size();
  const std::uint64_t shape = hash(extents, 0);
  for (std::size_t rules = exact_used_.load(std::memory_order_acquire) ? 0 : 1; rules < count;
       ++rules) {
    Extents bucket;
    bool has_bucket = true;
    for (std::size_t i = 0; i < dimensions; ++i) {
      bucket[i] = rule_sets_[rules][i].apply(extents[i]);
      has_bucket = has_bucket && bucket[i] != 0;
    }
    if (!has_bucket) continue;
    const IndexedEntry* entry = nullptr;
    const Slot& slot = *probe(table, bucket, rules, &entry);
    if (entry == nullptr) continue;
    const std::uint32_t version = slot.version.load(std::memory_order_acquire);
    entry = slot.entry.load(std::memory_order_acquire);
    const std::uint64_t terms = slot.terms.load(std::memory_order_acquire);
    const std::uint64_t measured = slot.measured.load(std::memory_order_acquire);
    bool exact = measured == shape, transferred = (terms & kTransferred) != 0;
    std::int64_t wrong_bits = 0;
    for (std::size_t i = 0; i < dimensions; ++i)
      wrong_bits |= extents[i] & ((std::int64_t{1} << (terms >> (6 * i) & 63)) - 1);
    if (version % 2 != 0 || slot.version.load(std::memory_order_relaxed) != version ||
        (terms & (kMoreToCheck | kOnlyAsMeasured)) != 0 || (exact && wrong_bits != 0)) {
      // The entry itself knows: it is being replaced, has more to check, or was measured here
      // against its own constraints.
      if (!stands_for(*entry, extents, &exact)) continue;
      transferred = entry->match != Match::kSame;
    } else if (wrong_bits != 0) {
      continue;
    }
    if (hit.entry != nullptr && !entry->beats(*hit.entry)) continue;
    hit.entry = entry;
    hit_exact = exact;
    hit_transferred = transferred;
  }
  if (hit.entry == nullptr) return hit;
  hit.outcome = hit_transferred ? Outcome::kTransferred
                : hit_exact     ? Outcome::kExact
                                : Outcome::kBucket;
  return hit;
}

void OpIndex::update(const Store& store) {
  std::vector<Id128> changed;
  const std::uint64_t group = group_of(wanted_);
  const bool anew = !started_ || generation_ != store.generation();
  if (anew) {
    store.catalog().each_of_group(group, [&](const EntryRow& row) { changed.push_back(row.key); });
    // The file was replaced: what is not in it any more must not be found.
    for (const auto& [key, live] : live_) changed.push_back(key);
  } else {
    for (std::size_t i = seen_; i < store.changes().size(); ++i)
      if (store.changes()[i].group == group) changed.push_back(store.changes()[i].key);
  }
  started_ = true;
  generation_ = store.generation();
  seen_ = store.changes().size();

  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  bool withdrawn = false;
  std::vector<const IndexedEntry*> fresh;
  for (const Id128& key : changed) {
    Live now = index_key(store, key);
    Live& held = live_[key];
    for (const IndexedEntry* old : held)
      withdrawn = withdrawn || std::find(now.begin(), now.end(), old) == now.end();
    for (const IndexedEntry* entry : now)
      if (std::find(held.begin(), held.end(), entry) == held.end()) fresh.push_back(entry);
    held = std::move(now);
    if (held.empty()) live_.erase(key);
  }
  if (withdrawn)
    rebuild();
  else
    for (const IndexedEntry* entry : fresh) insert(entry);
}

OpIndex::Live OpIndex::index_key(const Store& store, const Id128& key) {
  Live live;
  const auto held = live_.find(key);
  for (const StoredEntry& stored : store.served(group_of(wanted_), key)) {
    const auto same_shape = [&](const IndexedEntry* entry) {
      return entry->problem == stored.entry.problem;
    };
    // The best stands for the bucket; another for the shape it was measured at, if that differs.
    if (std::any_of(live.begin(), live.end(), same_shape)) continue;
    const bool for_bucket = live.empty();
    std::unique_ptr<IndexedEntry> made = make(stored, !for_bucket);
    if (made == nullptr) continue;
    const auto same = [&](const IndexedEntry* entry) {
      return entry->record == made->record && entry->for_bucket == for_bucket &&
             entry->match == made->match;
    };
    if (held != live_.end()) {
      const auto again = std::find_if(held->second.begin(), held->second.end(), same);
      if (again != held->second.end()) {
        live.push_back(*again);
        continue;
      }
    }
    live.push_back(made.get());
    entries_.push_back(std::move(made));
  }
  return live;
}

void OpIndex::rebuild() {
  tables_.push_back(std::make_unique<Table>(16, dimensions_.size()));
  size_ = 0;
  for (const auto& [key, live] : live_)
    for (const IndexedEntry* entry : live) insert(entry);
  table_.store(tables_.back().get(), std::memory_order_release);
}

std::size_t OpIndex::rule_set(const Entry& entry, bool exact) {
  RuleSet wanted;
  for (std::size_t i = 0; i < dimensions_.size() && !exact; ++i)
    for (const auto& [dimension, rule] : entry.bucket_rules)
      if (dimension == dimensions_[i]) wanted[i] = rule;
  const std::size_t count = rule_count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i)
    if (rule_sets_[i] == wanted) return i;
  if (count == kMaxRuleSets) return 0;  // one spec had its buckets redrawn this often: exact only
  rule_sets_[count] = wanted;
  rule_count_.store(count + 1, std::memory_order_release);
  return count;
}

std::unique_ptr<IndexedEntry> OpIndex::make(const StoredEntry& stored, bool at_its_shape_only) {
  const Entry& entry = stored.entry;
  // Shapes of other dimensions are another problem, whatever the op is called.
  if (entry.problem.items().size() != dimensions_.size()) return nullptr;
  auto indexed = std::make_unique<IndexedEntry>();
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const std::int64_t* extent = entry.problem.find(dimensions_[i]);
    if (extent == nullptr) return nullptr;
    indexed->measured[i] = *extent;
  }
  CacheKey wanted = wanted_;
  wanted.bucket = entry.key.bucket;
  Comparison comparison = compare(wanted, entry.key);
  if (comparison.match == Match::kForeign) return nullptr;
  if (comparison.match == Match::kTransferable && stored.validated(wanted_))
    comparison.match = Match::kSame;
  if (comparison.match == Match::kTransferable && !allow_transferred_) return nullptr;

  indexed->config = entry.config;
  indexed->options = join(gpu::macro_options(entry.config), " ");
  indexed->id = entry.key.id();
  indexed->record = stored.record;
  indexed->problem = entry.problem;
  indexed->time_ms = entry.time_ms;
  indexed->default_time_ms = entry.default_time_ms;
  indexed->runner_up_ms = entry.runner_up_ms;
  indexed->default_config = entry.default_config;
  indexed->runner_up = entry.runner_up;
  indexed->verified = entry.verified;
  indexed->match = comparison.match;
  indexed->other_model = !wanted_.device.empty() && wanted_.device != entry.key.device;
  indexed->distance = comparison.distance;
  indexed->recorded_at = entry.recorded_at;
  indexed->for_bucket = !at_its_shape_only;
  indexed->check = ShapeCheck::compile(entry, dimensions_);
  indexed->rules = rule_set(entry, at_its_shape_only);
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    indexed->bucket[i] = rule_sets_[indexed->rules][i].apply(indexed->measured[i]);
    if (indexed->bucket[i] == 0) return nullptr;
  }
  if (indexed->rules == 0) exact_used_.store(true, std::memory_order_release);
  return indexed;
}

void OpIndex::insert(const IndexedEntry* entry) {
  if ((size_ + 1) * 2 > tables_.back()->size()) grow();
  const IndexedEntry* held = nullptr;
  Slot& slot = *probe(*tables_.back(), entry->bucket, entry->rules, &held);
  if (held != nullptr && !entry->beats(*held)) return;
  if (held == nullptr) {
    ++size_;
    slot.rules = static_cast<std::uint32_t>(entry->rules);
    std::copy_n(entry->bucket.begin(), dimensions_.size(), slot.bucket());
  }
  const std::uint32_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  slot.terms.store(terms_of(*entry), std::memory_order_release);
  slot.measured.store(hash(entry->measured.data(), 0), std::memory_order_release);
  slot.entry.store(entry, std::memory_order_release);
  slot.version.store(version + 2, std::memory_order_release);
}

void OpIndex::grow() {
  // Readers stay on the outgrown table until the new one, which holds everything, is published.
  const bool published = table_.load(std::memory_order_relaxed) == tables_.back().get();
  const Table& from = *tables_.back();
  tables_.push_back(std::make_unique<Table>(from.size() * 2, dimensions_.size()));
  size_ = 0;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (const IndexedEntry* entry = from.at(i).entry.load(std::memory_order_relaxed)) insert(entry);
  if (published) table_.store(tables_.back().get(), std::memory_order_release);
}

}  // namespace purlin::cache
