// SPDX-License-Identifier: Apache-2.0
#include "cache/op_index.h"

#include "base/text.h"
#include "gpu/launching.h"

#include <algorithm>
#include <tuple>

namespace purlin::cache {

// Open addressing with linear probing. A slot's entry goes from null to an entry once, and from
// there to a better one for the same bucket; readers see either.
struct OpIndex::Table {
  explicit Table(std::size_t count) : mask(count - 1), slots(count) {}
  const std::size_t mask;
  std::vector<std::atomic<const IndexedEntry*>> slots;
};

bool IndexedEntry::beats(const IndexedEntry& other) const {
  return std::tie(match, distance, other.recorded_at, record) <
         std::tie(other.match, other.distance, recorded_at, other.record);
}

OpIndex::OpIndex(CacheKey wanted, std::vector<std::string> dimensions, bool allow_transferred)
    : wanted_(std::move(wanted)),
      dimensions_(std::move(dimensions)),
      allow_transferred_(allow_transferred) {
  tables_.push_back(std::make_unique<Table>(16));
  table_.store(tables_.back().get(), std::memory_order_release);
}

OpIndex::~OpIndex() = default;

std::uint64_t OpIndex::hash(const Extents& bucket, std::size_t rules) const noexcept {
  // A multiply-xorshift chain: each extent is spread over all bits before the next comes in.
  std::uint64_t h = 0x9E3779B97F4A7C15u * (rules + 1);
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    h = (h ^ static_cast<std::uint64_t>(bucket[i])) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

const IndexedEntry* OpIndex::probe(const Table& table, const Extents& bucket,
                                   std::size_t rules) const noexcept {
  // The table is never full, so the walk ends.
  for (std::size_t at = hash(bucket, rules) & table.mask;; at = (at + 1) & table.mask) {
    const IndexedEntry* entry = table.slots[at].load(std::memory_order_acquire);
    if (entry == nullptr || (entry->rules == rules && entry->bucket == bucket)) return entry;
  }
}

OpIndex::Hit OpIndex::find(const std::int64_t* extents) const noexcept {
  Hit hit;
  bool exact = false;
  const Table& table = *table_.load(std::memory_order_acquire);
  const std::size_t count = rule_count_.load(std::memory_order_acquire);
  for (std::size_t rules = exact_used_.load(std::memory_order_acquire) ? 0 : 1; rules < count;
       ++rules) {
    Extents bucket{};
    bool has_bucket = true;
    for (std::size_t i = 0; i < dimensions_.size(); ++i) {
      bucket[i] = rule_sets_[rules][i].apply(extents[i]);
      has_bucket = has_bucket && bucket[i] != 0;
    }
    if (!has_bucket) continue;
    const IndexedEntry* entry = probe(table, bucket, rules);
    if (entry == nullptr || (hit.entry != nullptr && !entry->beats(*hit.entry))) continue;
    const bool measured =
        std::equal(extents, extents + dimensions_.size(), entry->measured.begin());
    if (!measured && (!entry->check || !entry->check->holds(extents))) continue;
    hit.entry = entry;
    exact = measured;
  }
  if (hit.entry != nullptr)
    hit.outcome = hit.entry->match != Match::kSame ? Outcome::kTransferred
                  : exact                          ? Outcome::kExact
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
    const auto same = [&](const IndexedEntry* entry) {
      return entry->record == stored.record && entry->for_bucket == for_bucket;
    };
    if (held != live_.end()) {
      const auto again = std::find_if(held->second.begin(), held->second.end(), same);
      if (again != held->second.end()) {
        live.push_back(*again);
        continue;
      }
    }
    if (auto made = make(stored, !for_bucket)) {
      live.push_back(made.get());
      entries_.push_back(std::move(made));
    }
  }
  return live;
}

void OpIndex::rebuild() {
  tables_.push_back(std::make_unique<Table>(16));
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
  if ((size_ + 1) * 2 > tables_.back()->slots.size()) grow();
  Table& table = *tables_.back();
  for (std::size_t at = hash(entry->bucket, entry->rules) & table.mask;;
       at = (at + 1) & table.mask) {
    const IndexedEntry* held = table.slots[at].load(std::memory_order_relaxed);
    if (held != nullptr && !(held->rules == entry->rules && held->bucket == entry->bucket))
      continue;
    if (held == nullptr) ++size_;
    if (held == nullptr || entry->beats(*held))
      table.slots[at].store(entry, std::memory_order_release);
    return;
  }
}

void OpIndex::grow() {
  // Readers stay on the outgrown table until the new one, which holds everything, is published.
  const bool published = table_.load(std::memory_order_relaxed) == tables_.back().get();
  const std::size_t from = tables_.size() - 1;
  tables_.push_back(std::make_unique<Table>(tables_[from]->slots.size() * 2));
  Table& table = *tables_.back();
  for (const auto& slot : tables_[from]->slots) {
    const IndexedEntry* entry = slot.load(std::memory_order_relaxed);
    if (entry == nullptr) continue;
    std::size_t at = hash(entry->bucket, entry->rules) & table.mask;
    while (table.slots[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) & table.mask;
    table.slots[at].store(entry, std::memory_order_relaxed);
  }
  if (published) table_.store(&table, std::memory_order_release);
}

}  // namespace purlin::cache
