// SPDX-License-Identifier: Apache-2.0
#include "cache/op_index.h"

#include "base/text.h"
#include "cache/layer_union.h"
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
  return std::tie(match, layer, distance, other.recorded_at, record) <
         std::tie(other.match, other.layer, other.distance, recorded_at, other.record);
}

bool IndexedEntry::same_as(const IndexedEntry& other) const {
  return record == other.record && for_bucket == other.for_bucket && match == other.match &&
         layer == other.layer && directory == other.directory && below == other.below;
}

namespace {

// Which of two entries of different buckets or keys a shape gets: one measured at it comes before
// its key's others, and before other layers'.
bool preferred(const IndexedEntry& a, bool a_exact, const IndexedEntry& b, bool b_exact) {
  if (a.match == b.match && a_exact != b_exact && (a.layer != b.layer || a.id == b.id))
    return a_exact;
  return a.beats(b);
}

}  // namespace

OpIndex::OpIndex(CacheKey wanted, std::vector<std::string> dimensions, bool allow_transferred)
    : wanted_(std::move(wanted)),
      dimensions_(std::move(dimensions)),
      allow_transferred_(allow_transferred) {
  nobody_.measured.fill(-1);  // no shape's extent
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

const IndexedEntry* OpIndex::standing_in(const IndexedEntry* entry, const std::int64_t* extents,
                                         bool* exact) const noexcept {
  for (; entry != nullptr; entry = entry->below) {
    *exact = std::equal(extents, extents + dimensions_.size(), entry->measured.begin());
    if (*exact || (entry->check && entry->check->holds(extents))) return entry;
  }
  return nullptr;
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
    if (!bucket_at(rules, extents, &bucket)) continue;
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
      entry = standing_in(entry, extents, &exact);
      if (entry == nullptr) continue;
      transferred = entry->match != Match::kSame;
    } else if (wrong_bits != 0) {
      entry = standing_in(entry->below, extents, &exact);
      if (entry == nullptr) continue;
      transferred = entry->match != Match::kSame;
    }
    if (hit.entry != nullptr && !preferred(*entry, exact, *hit.entry, hit_exact)) continue;
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

void OpIndex::prefetch(const std::int64_t* extents) const noexcept {
  const Table& table = *table_.load(std::memory_order_acquire);
  const std::size_t count = rule_count_.load(std::memory_order_acquire);
  for (std::size_t rules = exact_used_.load(std::memory_order_acquire) ? 0 : 1; rules < count;
       ++rules) {
    Extents bucket;
    if (bucket_at(rules, extents, &bucket))
      __builtin_prefetch(&table.at(hash(bucket.data(), rules) & table.mask));
  }
}

std::size_t OpIndex::table_bytes() const {
  std::size_t bytes = 0;
  for (const std::unique_ptr<Table>& table : tables_) bytes += table->bytes;
  return bytes;
}

std::vector<Id128> OpIndex::changed_keys(std::span<const Store> layers) {
  std::vector<Id128> changed;
  const std::uint64_t group = group_of(wanted_);
  const auto same_file = [](const Followed& followed, const Store& store) {
    return followed.directory == store.directory() && followed.generation == store.generation();
  };
  // The first time, where a file was replaced and where a layer came or went, everything counts as
  // changed: what is there no more must not be found.
  if (!std::equal(followed_.begin(), followed_.end(), layers.begin(), layers.end(), same_file)) {
    followed_.clear();
    for (const Store& store : layers) {
      followed_.push_back({store.directory(), store.generation(), 0});
      store.catalog().each_of_group(group,
                                    [&](const EntryRow& row) { changed.push_back(row.key); });
    }
    for (const auto& [key, live] : live_) changed.push_back(key);
  } else {
    const LayerUnion all(layers);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::vector<Store::Change>& changes = layers[i].changes();
      for (std::size_t at = followed_[i].seen; at < changes.size(); ++at) {
        if (changes[at].group == group) changed.push_back(changes[at].key);
        if (changes[at].about == Id128()) continue;
        if (const EntryRow* row = all.entry(changes[at].about);
            row != nullptr && row->group == group)
          changed.push_back(row->key);
      }
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) followed_[i].seen = layers[i].changes().size();
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  return changed;
}

void OpIndex::update(std::span<const Store> layers) {
  std::vector<const IndexedEntry*> withdrawn, fresh;
  for (const Id128& key : changed_keys(layers)) {
    Live now = index_key(layers, key);
    Live& held = live_[key];
    for (const IndexedEntry* old : held)
      if (std::find(now.begin(), now.end(), old) == now.end()) withdrawn.push_back(old);
    for (const IndexedEntry* entry : now)
      if (std::find(held.begin(), held.end(), entry) == held.end()) fresh.push_back(entry);
    held = std::move(now);
    if (held.empty()) live_.erase(key);
  }
  if (!withdrawn.empty()) withdraw(withdrawn);
  for (const IndexedEntry* entry : fresh) insert(entry);
}

// Each slot that holds one of them gets the best that is left for its bucket, else nobody.
void OpIndex::withdraw(const std::vector<const IndexedEntry*>& entries) {
  std::unordered_map<Slot*, const IndexedEntry*> vacant;
  const IndexedEntry* held = nullptr;
  for (const IndexedEntry* entry : entries) {
    Slot* slot = probe(*tables_.back(), entry->bucket, entry->rules, &held);
    if (held == entry) vacant.emplace(slot, &nobody_);
  }
  if (vacant.empty()) return;
  for (const auto& [key, live] : live_)
    for (const IndexedEntry* entry : live) {
      const auto at = vacant.find(probe(*tables_.back(), entry->bucket, entry->rules, &held));
      if (at != vacant.end() && (at->second == &nobody_ || entry->beats(*at->second)))
        at->second = entry;
    }
  for (const auto& [slot, entry] : vacant) write(*slot, *entry);
}

OpIndex::Live OpIndex::index_key(std::span<const Store> layers, const Id128& key) {
  const std::vector<LayerUnion::Layered> served = LayerUnion(layers).served(group_of(wanted_), key);
  const auto made = [&](const LayerUnion::Layered& from, bool at_its_shape_only) {
    std::unique_ptr<IndexedEntry> entry = make(from.stored, at_its_shape_only);
    if (entry == nullptr) return entry;
    entry->layer = from.layer;
    entry->directory = layers[from.layer].directory();
    return entry;
  };
  // The best of each layer stands for the bucket, the uppermost first, the next where that one is
  // not valid; from below upwards, since an entry is not changed once it is published.
  Live live;
  const IndexedEntry* below = nullptr;
  for (std::size_t i = served.size(); i-- > 0;) {
    if (i > 0 && served[i - 1].layer == served[i].layer) continue;  // not its layer's best
    std::unique_ptr<IndexedEntry> entry = made(served[i], false);
    if (entry == nullptr) continue;
    if (below != nullptr && entry->rules == below->rules && entry->bucket == below->bucket)
      entry->below = below;
    else if (below != nullptr)
      live.insert(live.begin(), below);
    below = publish(std::move(entry));
  }
  if (below != nullptr) live.insert(live.begin(), below);
  // The others, for the shapes they were measured at.
  std::vector<const ProblemShape*> measured;
  if (!live.empty()) measured.push_back(&live.front()->problem);
  for (const LayerUnion::Layered& from : served) {
    const ProblemShape& problem = from.stored.entry.problem;
    if (std::any_of(measured.begin(), measured.end(),
                    [&](const ProblemShape* other) { return *other == problem; }))
      continue;
    std::unique_ptr<IndexedEntry> entry = made(from, true);
    if (entry == nullptr) continue;
    live.push_back(publish(std::move(entry)));
    measured.push_back(&live.back()->problem);
  }
  return live;
}

// The same one, where it was published before.
const IndexedEntry* OpIndex::publish(std::unique_ptr<IndexedEntry> made) {
  std::vector<const IndexedEntry*>& known = of_record_[made->record];
  for (const IndexedEntry* entry : known)
    if (entry->same_as(*made)) return entry;
  known.push_back(made.get());
  entries_.push_back(std::move(made));
  return known.back();
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

void OpIndex::write(Slot& slot, const IndexedEntry& entry) {
  const std::uint32_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  slot.terms.store(terms_of(entry), std::memory_order_release);
  slot.measured.store(hash(entry.measured.data(), 0), std::memory_order_release);
  slot.entry.store(&entry, std::memory_order_release);
  slot.version.store(version + 2, std::memory_order_release);
}

void OpIndex::insert(const IndexedEntry* entry) {
  if ((size_ + 1) * 2 > tables_.back()->size()) grow();
  const IndexedEntry* held = nullptr;
  Slot& slot = *probe(*tables_.back(), entry->bucket, entry->rules, &held);
  if (held != nullptr && held != &nobody_ && !entry->beats(*held)) return;
  if (held == nullptr) {
    ++size_;
    slot.rules = static_cast<std::uint32_t>(entry->rules);
    std::copy_n(entry->bucket.begin(), dimensions_.size(), slot.bucket());
  }
  write(slot, *entry);
}

void OpIndex::grow() {
  // Readers stay on the outgrown table until the new one, which holds everything, is published.
  const bool published = table_.load(std::memory_order_relaxed) == tables_.back().get();
  const Table& from = *tables_.back();
  // Slots of withdrawn entries are left behind; where they were most, that makes room enough.
  std::size_t live = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const IndexedEntry* entry = from.at(i).entry.load(std::memory_order_relaxed);
    live += entry != nullptr && entry != &nobody_ ? 1 : 0;
  }
  const std::size_t wanted = live * 4 > from.size() ? from.size() * 2 : from.size();
  tables_.push_back(std::make_unique<Table>(wanted, dimensions_.size()));
  size_ = 0;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (const IndexedEntry* entry = from.at(i).entry.load(std::memory_order_relaxed);
        entry != nullptr && entry != &nobody_)
      insert(entry);
  if (published) table_.store(tables_.back().get(), std::memory_order_release);
}

}  // namespace purlin::cache
