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
  return std::tuple(match, distance, other.sequence) <
         std::tuple(other.match, other.distance, sequence);
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
  if (generation_ != store.generation()) {
    // The file was replaced: what is not in it any more must not be found.
    tables_.push_back(std::make_unique<Table>(16));
    size_ = 0;
    seen_ = 0;
    generation_ = store.generation();
    for (const auto& [id, stored] : store.entries()) add(stored);
    table_.store(tables_.back().get(), std::memory_order_release);
  } else if (seen_ != store.sequence()) {
    for (const auto& [id, stored] : store.entries())
      if (stored.sequence > seen_) add(stored);
  }
  seen_ = store.sequence();
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

void OpIndex::add(const StoredEntry& stored) {
  const Entry& entry = stored.entry;
  // Shapes of other dimensions are another problem, whatever the op is called.
  if (entry.problem.items().size() != dimensions_.size()) return;
  auto indexed = std::make_unique<IndexedEntry>();
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const std::int64_t* extent = entry.problem.find(dimensions_[i]);
    if (extent == nullptr) return;
    indexed->measured[i] = *extent;
  }
  CacheKey wanted = wanted_;
  wanted.bucket = entry.key.bucket;
  const Comparison comparison = compare(wanted, entry.key);
  if (comparison.match == Match::kForeign) return;
  if (comparison.match == Match::kTransferable && !allow_transferred_) return;

  indexed->config = entry.config;
  indexed->options = join(gpu::macro_options(entry.config), " ");
  indexed->id = entry.key.id();
  indexed->problem = entry.problem;
  indexed->time_ms = entry.time_ms;
  indexed->default_time_ms = entry.default_time_ms;
  indexed->verified = entry.verified;
  indexed->match = comparison.match;
  indexed->distance = comparison.distance;
  indexed->sequence = stored.sequence;
  indexed->check = ShapeCheck::compile(entry, dimensions_);
  indexed->rules = rule_set(entry, false);
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    indexed->bucket[i] = rule_sets_[indexed->rules][i].apply(indexed->measured[i]);
    if (indexed->bucket[i] == 0) return;
  }
  insert(indexed.get());
  if (indexed->rules == 0) exact_used_.store(true, std::memory_order_release);
  entries_.push_back(std::move(indexed));
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
