// SPDX-License-Identifier: Apache-2.0
#include "cache/hot/op_index.h"

#include "base/text.h"
#include "cache/hot/huge_page_buffer.h"
#include "cache/layers/merged_view.h"
#include "gpu/launching.h"

#include <algorithm>
#include <tuple>

namespace purlin::cache {

namespace {

// The most fill one huge page; of them, six thousand shapes (of more than four dimensions, one
// thousand) leave less than one that has no room in its two lines.
constexpr std::size_t kMinMemoLines = 256,
                      kMaxMemoLines = HugePageBuffer::kHugePage / HugePageBuffer::kLine;

// The facts about an entry that find() needs in addition to its bucket, in one word. A field for
// each dimension says which bits of the extent must be 0. The flags below follow. A field holds the
// multiples that tiles are; the entry's own check handles larger ones.
constexpr std::uint64_t kOnlyAsMeasured = std::uint64_t{1} << 60;  // no check could be compiled
constexpr std::uint64_t kMoreToCheck = std::uint64_t{1} << 61;     // the entry's own check decides
constexpr std::uint64_t kTransferred = std::uint64_t{1} << 62;
constexpr std::size_t field_bits(std::size_t dimensions) { return dimensions <= 4 ? 15 : 7; }
constexpr std::uint64_t low_bits(std::size_t count) { return (std::uint64_t{1} << count) - 1; }

std::uint64_t terms_of(const IndexedEntry& entry, std::size_t dimensions) {
  std::uint64_t terms = entry.match == Match::kSame ? 0 : kTransferred;
  if (!entry.check) return terms | kOnlyAsMeasured;
  if (entry.check->rest()) terms |= kMoreToCheck;
  const std::size_t bits = field_bits(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (entry.check->zero_bits()[i] <= bits)
      terms |= low_bits(entry.check->zero_bits()[i]) << (bits * i);
    else
      terms |= kMoreToCheck;
  }
  return terms;
}

// The low bits of the extents, in the fields of terms_of.
template <std::size_t D>
std::uint64_t fields_of(const std::int64_t* extents) noexcept {
  constexpr std::size_t kBits = field_bits(D);
  std::uint64_t fields = 0;
  for (std::size_t i = 0; i < D; ++i)
    fields |= (static_cast<std::uint64_t>(extents[i]) & low_bits(kBits)) << (kBits * i);
  return fields;
}

// Tells shapes apart: a sum of products, none of which waits for another. The factors are odd and
// random.
template <std::size_t D>
std::uint64_t sum_of(const std::int64_t* extents) noexcept {
  constexpr std::uint64_t kFactors[kMaxDimensions] = {
      0xF1357AEA2E62A9C5u, 0x9E6C63D0876A9A99u, 0xD1B54A32D192ED03u, 0xABC98388FB8FAC03u,
      0x8CB92BA72F3D8DD7u, 0xDB4F0B9175AE2165u, 0xBBE0563303A4615Fu, 0xA0F2EC75A1FE1575u};
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < D; ++i) sum += static_cast<std::uint64_t>(extents[i]) * kFactors[i];
  return sum;
}

// Where in a table a bucket is looked for first: every bit of the sum counts for the low ones.
template <std::size_t D>
std::uint64_t spread_of(const std::int64_t* bucket, std::size_t rules) noexcept {
  std::uint64_t h = sum_of<D>(bucket) + 0x9E3779B97F4A7C15u * rules;
  h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
  return h ^ (h >> 32);
}

// body.template operator()<D>() for the number of dimensions, which a compiler must know.
template <class Body>
decltype(auto) with_dimensions(std::size_t count, Body body) {
  static_assert(kMaxDimensions == 8);
  switch (count) {
    case 0:
      return body.template operator()<0>();
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    case 4:
      return body.template operator()<4>();
    case 5:
      return body.template operator()<5>();
    case 6:
      return body.template operator()<6>();
    case 7:
      return body.template operator()<7>();
    default:
      return body.template operator()<8>();
  }
}

}  // namespace

// Open addressing with linear probing over slots of one cache line (two, for more than four
// dimensions), so that a lookup in a large table misses the processor's caches once. A slot's
// bucket is written before its entry is published and never again; entry, terms and measured change
// together when a better entry comes, which `version` tells: odd while they do.
struct OpIndex::Slot {
  std::atomic<const IndexedEntry*> entry{nullptr};
  std::atomic<std::uint64_t> terms{0}, measured{0};  // the latter the sum of the measured shape
  std::atomic<std::uint32_t> version{0};
  std::uint32_t rules = 0;

  std::int64_t* bucket() { return reinterpret_cast<std::int64_t*>(this + 1); }  // by dimension
};

struct OpIndex::Table {
  Table(std::size_t count, std::size_t dimensions)
      : mask(count - 1),
        stride((sizeof(Slot) + dimensions * sizeof(std::int64_t) + HugePageBuffer::kLine - 1) /
               HugePageBuffer::kLine * HugePageBuffer::kLine),
        memory(count * stride) {
    for (std::size_t i = 0; i < count; ++i) new (memory.data() + i * stride) Slot;
  }
  std::size_t size() const { return mask + 1; }
  Slot& at(std::size_t i) const { return *reinterpret_cast<Slot*>(memory.data() + i * stride); }

  const std::size_t mask, stride;
  const HugePageBuffer memory;
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
    : finder_(finder_for(dimensions.size())),
      dimension_count_(dimensions.size()),
      wanted_(std::move(wanted)),
      group_(group_of(wanted_)),
      dimensions_(std::move(dimensions)),
      allow_transferred_(allow_transferred) {
  nobody_.measured.fill(-1);  // no shape's extent
  tables_.push_back(std::make_unique<Table>(16, dimensions_.size()));
  table_.store(tables_.back().get(), std::memory_order_release);
  grow_memo();
}

OpIndex::~OpIndex() = default;

template <std::size_t D>
[[gnu::always_inline]] inline bool OpIndex::bucket_at(std::size_t rules,
                                                      const std::int64_t* extents,
                                                      std::int64_t* bucket) const noexcept {
  const RuleSet& set = rule_sets_[rules];
  bool exists = true;
  for (std::size_t i = 0; i < D; ++i) {
    bucket[i] = set[i].apply(extents[i]);
    exists = exists && bucket[i] != 0;
  }
  return exists;
}

template <std::size_t D>
[[gnu::always_inline]] inline OpIndex::Place OpIndex::probe(const Table& table,
                                                            const std::int64_t* bucket,
                                                            std::size_t rules) noexcept {
  // The table is never full, so the walk ends.
  for (std::size_t at = spread_of<D>(bucket, rules) & table.mask;; at = (at + 1) & table.mask) {
    Slot& slot = table.at(at);
    const IndexedEntry* held = slot.entry.load(std::memory_order_acquire);
    if (held == nullptr) return {&slot, nullptr};
    std::uint64_t differs = slot.rules ^ rules;
    for (std::size_t i = 0; i < D; ++i)
      differs |= static_cast<std::uint64_t>(slot.bucket()[i] ^ bucket[i]);
    if (differs == 0) return {&slot, held};
  }
}

[[gnu::noinline]] OpIndex::Found OpIndex::standing_in(const IndexedEntry* entry,
                                                      const std::int64_t* extents) const noexcept {
  for (; entry != nullptr; entry = entry->below) {
    const bool exact = std::equal(extents, extents + dimensions_.size(), entry->measured.begin());
    if (exact || (entry->check && entry->check->holds(extents)))
      return {entry, exact, entry->match != Match::kSame};
  }
  return {};
}

void OpIndex::prefetch(const std::int64_t* extents) const noexcept {
  with_dimensions(dimension_count_, [&]<std::size_t D>() { prefetch_in<D>(extents); });
}

template <std::size_t D>
[[gnu::always_inline]] inline OpIndex::Found OpIndex::found_under(
    const Table& table, std::size_t rules, const std::int64_t* extents) const noexcept {
  std::int64_t bucket[D + 1];  // an array of none is none
  if (!bucket_at<D>(rules, extents, bucket)) [[unlikely]]
    return {};
  const auto [slot, held] = probe<D>(table, bucket, rules);
  if (held == nullptr) return {};
  const std::uint32_t version = slot->version.load(std::memory_order_acquire);
  const IndexedEntry* const entry = slot->entry.load(std::memory_order_acquire);
  const std::uint64_t terms = slot->terms.load(std::memory_order_acquire);
  const std::uint64_t measured = slot->measured.load(std::memory_order_acquire);
  const bool exact = measured == sum_of<D>(extents);
  const bool wrong_bits = (terms & fields_of<D>(extents)) != 0;
  if (version % 2 != 0 || slot->version.load(std::memory_order_relaxed) != version ||
      (terms & (kMoreToCheck | kOnlyAsMeasured)) != 0 || (exact && wrong_bits)) [[unlikely]]
    // The entry itself knows: it is being replaced, has more to check, or was measured here
    // against its own constraints.
    return standing_in(entry, extents);
  if (wrong_bits) [[unlikely]]
    return standing_in(entry->below, extents);
  return {entry, exact, (terms & kTransferred) != 0};
}

template <std::size_t D>
[[gnu::noinline]] OpIndex::Found OpIndex::found_under_any(
    const Table& table, std::size_t first, std::size_t end,
    const std::int64_t* extents) const noexcept {
  Found best;
  for (std::size_t rules = first; rules < end; ++rules) {
    const Found found = found_under<D>(table, rules, extents);
    if (found.entry != nullptr &&
        (best.entry == nullptr || preferred(*found.entry, found.exact, *best.entry, best.exact)))
      best = found;
  }
  return best;
}

namespace {

// One in 32, at random: shapes that are asked for often come to be kept in place of others, and
// those that are too many for a memo seldom write to it.
bool may_displace() noexcept {
  thread_local std::uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return state >> 27 == 0;
}

// As a memo keeps it: the entry's address, whose low bits are 0, and the outcome.
static_assert(alignof(IndexedEntry) >= 8 && static_cast<int>(Outcome::kMiss) < 8);
std::uint64_t answer_of(const OpIndex::Hit& hit) noexcept {
  return reinterpret_cast<std::uintptr_t>(hit.entry) | static_cast<std::uint64_t>(hit.outcome);
}

}  // namespace

template <std::size_t D>
OpIndex::Hit OpIndex::find_in(const OpIndex& index, const std::int64_t* extents) noexcept {
  // The epoch first: an answer computed before a change must not pass for one after it.
  const std::uint32_t epoch = index.epoch_.load(std::memory_order_acquire);
  const AnswerLines memo = index.memo_.load(std::memory_order_acquire);
  if (!index.memo_pays_.load(std::memory_order_relaxed)) [[unlikely]]
    return index.find_in_table<D>(extents, nullptr, epoch);
  const std::uint64_t answer = memo.find<D>(extents, epoch);
  if (answer == 0) [[unlikely]]
    return index.find_in_table<D>(extents, &memo, epoch);
  return {static_cast<Outcome>(answer % 8), 0,
          reinterpret_cast<const IndexedEntry*>(answer - answer % 8)};
}

template <std::size_t D>
[[gnu::noinline]] OpIndex::Hit OpIndex::find_in_table(const std::int64_t* extents,
                                                      const AnswerLines* memo,
                                                      std::uint32_t epoch) const noexcept {
  const Table& table = *table_.load(std::memory_order_acquire);
  const std::size_t end = rule_count_.load(std::memory_order_acquire);
  const std::size_t first = exact_used_.load(std::memory_order_acquire) ? 0 : 1;
  const Found found = end - first == 1 ? found_under<D>(table, first, extents)
                                       : found_under_any<D>(table, first, end, extents);
  if (found.entry == nullptr) return {};
  Hit hit = {found.transferred ? Outcome::kTransferred
             : found.exact     ? Outcome::kExact
                               : Outcome::kBucket,
             0, found.entry};
  if (epoch % 2 != 0) return hit;
  hit.epoch = epoch;
  if (memo != nullptr && (memo->has_room<D>(extents, epoch) || may_displace())) [[unlikely]]
    memo->keep<D>(extents, answer_of(hit), epoch);
  return hit;
}

// After what it takes the address of: clang does not instantiate it otherwise.
OpIndex::Finder OpIndex::finder_for(std::size_t dimensions) {
  return with_dimensions(dimensions, []<std::size_t D>() -> Finder { return &find_in<D>; });
}

void OpIndex::learn(const std::int64_t* extents, const Hit& hit) const noexcept {
  const bool remembered = hit.epoch == 0 || with_dimensions(dimension_count_, [&]<std::size_t D>() {
                            const AnswerLines memo = memo_.load(std::memory_order_acquire);
                            if (memo.find<D>(extents, hit.epoch) != 0) return true;
                            memo.keep<D>(extents, answer_of(hit), hit.epoch);
                            return false;
                          });
  // A step that another thread takes at the same time may be lost. Written only where it changes:
  // every find() reads the same line.
  const int score = memo_score_.load(std::memory_order_relaxed);
  const int next = std::clamp(score + (remembered ? 1 : -1), 0, kMaxMemoScore);
  if (next != score) memo_score_.store(next, std::memory_order_relaxed);
  const bool paid = memo_pays_.load(std::memory_order_relaxed);
  const bool pays = paid ? next > 0 : next == kMaxMemoScore;
  if (pays != paid) memo_pays_.store(pays, std::memory_order_relaxed);
}

template <std::size_t D>
void OpIndex::prefetch_in(const std::int64_t* extents) const noexcept {
  if (memo_pays_.load(std::memory_order_relaxed))
    memo_.load(std::memory_order_acquire).prefetch<D>(extents);
  const Table& table = *table_.load(std::memory_order_acquire);
  const std::size_t count = rule_count_.load(std::memory_order_acquire);
  for (std::size_t rules = exact_used_.load(std::memory_order_acquire) ? 0 : 1; rules < count;
       ++rules) {
    std::int64_t bucket[D + 1];
    if (bucket_at<D>(rules, extents, bucket))
      __builtin_prefetch(&table.at(spread_of<D>(bucket, rules) & table.mask));
  }
}

std::size_t OpIndex::table_bytes() const {
  std::size_t bytes = 0;
  for (const std::unique_ptr<Table>& table : tables_) bytes += table->memory.bytes();
  for (const std::unique_ptr<LookupMemo>& memo : memos_) bytes += memo->bytes();
  return bytes;
}

// In the order of the log, where that is known: it is read as it lies.
std::vector<Id128> OpIndex::changed_keys(std::span<const Store> layers) {
  struct Changed {
    Id128 key;
    std::uint64_t offset = UINT64_MAX;
  };
  std::vector<Changed> changed;
  const auto same_file = [](const Followed& followed, const Store& store) {
    return followed.directory == store.directory() && followed.generation == store.generation();
  };
  // The first time, where a file was replaced and where a layer came or went, everything counts as
  // changed: what is there no more must not be found.
  if (!std::equal(followed_.begin(), followed_.end(), layers.begin(), layers.end(), same_file)) {
    followed_.clear();
    for (const Store& store : layers) {
      followed_.push_back({store.directory(), store.generation(), 0});
      store.record_set().each_of_group(group_, [&](const EntrySummary& summary) {
        changed.push_back({summary.key, summary.offset});
      });
    }
    for (const auto& [key, live] : live_) changed.push_back({key});
  } else {
    const MergedView all(layers);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const std::vector<Store::Change>& changes = layers[i].changes();
      for (std::size_t at = followed_[i].seen; at < changes.size(); ++at) {
        if (changes[at].group == group_) changed.push_back({changes[at].key});
        if (changes[at].about == Id128()) continue;
        if (const EntrySummary* summary = all.entry(changes[at].about);
            summary != nullptr && summary->group == group_)
          changed.push_back({summary->key});
      }
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) followed_[i].seen = layers[i].changes().size();
  std::sort(changed.begin(), changed.end(), [](const Changed& a, const Changed& b) {
    return std::tie(a.key, a.offset) < std::tie(b.key, b.offset);
  });
  const auto same_key = [](const Changed& a, const Changed& b) { return a.key == b.key; };
  changed.erase(std::unique(changed.begin(), changed.end(), same_key), changed.end());
  std::sort(changed.begin(), changed.end(), [](const Changed& a, const Changed& b) {
    return std::tie(a.offset, a.key) < std::tie(b.offset, b.key);
  });
  std::vector<Id128> keys;
  keys.reserve(changed.size());
  for (const Changed& each : changed) keys.push_back(each.key);
  return keys;
}

namespace {

// While answers change, the memo is off: a thread that saw a new answer finds no older one later.
class Changing {
 public:
  explicit Changing(std::atomic<std::uint32_t>& epoch) : epoch_(epoch) { raise(); }
  ~Changing() { raise(); }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;

 private:
  void raise() {
    epoch_.store(epoch_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  std::atomic<std::uint32_t>& epoch_;
};

}  // namespace

struct OpIndex::Reading {
  explicit Reading(std::span<const Store> layers)
      : all(layers), readers(all.readers(EntryParts::kServed, constraints)) {}
  const MergedView all;
  ConstraintCache constraints;
  std::deque<EntryReader> readers;
};

void OpIndex::update(std::span<const Store> layers) {
  std::vector<const IndexedEntry*> withdrawn, fresh;
  const std::vector<Id128> changed = changed_keys(layers);
  if (changed.empty()) return;
  if (changed.size() > live_.size()) {
    live_.reserve(changed.size());
    of_record_.reserve(changed.size());
    entries_.reserve(changed.size());
  }
  Reading reading(layers);
  for (const Id128& key : changed) {
    Live now = index_key(layers, key, reading);
    Live& held = live_[key];
    for (const IndexedEntry* old : held)
      if (std::find(now.begin(), now.end(), old) == now.end()) withdrawn.push_back(old);
    for (const IndexedEntry* entry : now)
      if (std::find(held.begin(), held.end(), entry) == held.end()) fresh.push_back(entry);
    held = std::move(now);
    if (held.empty()) live_.erase(key);
  }
  if (withdrawn.empty() && fresh.empty()) return;
  const Changing changing(epoch_);
  if (!withdrawn.empty()) withdraw(withdrawn);
  if (size_ == 0 && fresh.size() * 2 > tables_.back()->size()) grow(fresh.size());
  for (const IndexedEntry* entry : fresh) insert(entry);
  grow_memo();
}

// Each slot that holds one of them gets the best entry left for its bucket, else nobody_.
void OpIndex::withdraw(const std::vector<const IndexedEntry*>& entries) {
  std::unordered_map<Slot*, const IndexedEntry*> vacant;
  for (const IndexedEntry* entry : entries)
    if (const Place place = place_of(*entry); place.held == entry)
      vacant.emplace(place.slot, &nobody_);
  if (vacant.empty()) return;
  for (const auto& [key, live] : live_)
    for (const IndexedEntry* entry : live) {
      const auto at = vacant.find(place_of(*entry).slot);
      if (at != vacant.end() && (at->second == &nobody_ || entry->beats(*at->second)))
        at->second = entry;
    }
  for (const auto& [slot, entry] : vacant) write(*slot, *entry);
}

OpIndex::Live OpIndex::index_key(std::span<const Store> layers, const Id128& key,
                                 Reading& reading) {
  const std::vector<MergedView::Layered> served = reading.all.served(group_, key, reading.readers);
  const auto made = [&](const MergedView::Layered& from, bool at_its_shape_only) {
    std::unique_ptr<IndexedEntry> entry = make(from.stored, at_its_shape_only, reading.constraints);
    if (entry == nullptr) return entry;
    entry->layer = from.layer;
    entry->directory = layers[from.layer].directory();
    return entry;
  };
  // The best entry of each layer represents the bucket: the uppermost first, the next if that one
  // is not valid. Built from below upwards, since a published entry does not change.
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
  for (const MergedView::Layered& from : served) {
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
  std::vector<const IndexedEntry*>& known = of_record_[Id128::parse(made->record)];
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

std::unique_ptr<IndexedEntry> OpIndex::make(const StoredEntry& stored, bool at_its_shape_only,
                                            ConstraintCache& constraints) {
  const Entry& entry = stored.entry;
  // Shapes of other dimensions are another problem, also under the same op name.
  if (entry.problem.items().size() != dimensions_.size()) return nullptr;
  auto indexed = std::make_unique<IndexedEntry>();
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    const std::int64_t* extent = entry.problem.find(dimensions_[i]);
    if (extent == nullptr) return nullptr;
    indexed->measured[i] = *extent;
  }
  KeyMatch comparison = compare_but_bucket(wanted_, entry.key);
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
  indexed->check = compile_shape_check(entry, dimensions_, constraints);
  indexed->rules = rule_set(entry, at_its_shape_only);
  for (std::size_t i = 0; i < dimensions_.size(); ++i) {
    indexed->bucket[i] = rule_sets_[indexed->rules][i].apply(indexed->measured[i]);
    if (indexed->bucket[i] == 0) return nullptr;
  }
  if (indexed->rules == 0) exact_used_.store(true, std::memory_order_release);
  return indexed;
}

OpIndex::Place OpIndex::place_of(const IndexedEntry& entry) const {
  return with_dimensions(dimensions_.size(), [&]<std::size_t D>() {
    return probe<D>(*tables_.back(), entry.bucket.data(), entry.rules);
  });
}

void OpIndex::write(Slot& slot, const IndexedEntry& entry) {
  const std::uint32_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  slot.terms.store(terms_of(entry, dimensions_.size()), std::memory_order_release);
  slot.measured.store(
      with_dimensions(dimensions_.size(),
                      [&]<std::size_t D>() { return sum_of<D>(entry.measured.data()); }),
      std::memory_order_release);
  slot.entry.store(&entry, std::memory_order_release);
  slot.version.store(version + 2, std::memory_order_release);
}

void OpIndex::insert(const IndexedEntry* entry) {
  if ((size_ + 1) * 2 > tables_.back()->size()) grow(1);
  const auto [slot, held] = place_of(*entry);
  if (held != nullptr && held != &nobody_ && !entry->beats(*held)) return;
  if (held == nullptr) {
    ++size_;
    slot->rules = static_cast<std::uint32_t>(entry->rules);
    std::copy_n(entry->bucket.begin(), dimensions_.size(), slot->bucket());
  }
  write(*slot, *entry);
}

void OpIndex::grow(std::size_t more) {
  // Readers stay on the outgrown table until the new one, which holds everything, is published.
  const bool published = table_.load(std::memory_order_relaxed) == tables_.back().get();
  const Table& from = *tables_.back();
  // Slots of withdrawn entries are left behind; where they were most, that makes room enough.
  std::size_t live = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const IndexedEntry* entry = from.at(i).entry.load(std::memory_order_relaxed);
    live += entry != nullptr && entry != &nobody_ ? 1 : 0;
  }
  std::size_t wanted = live * 4 > from.size() ? from.size() * 2 : from.size();
  while (wanted < 2 * (live + more)) wanted *= 2;
  tables_.push_back(std::make_unique<Table>(wanted, dimensions_.size()));
  size_ = 0;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (const IndexedEntry* entry = from.at(i).entry.load(std::memory_order_relaxed);
        entry != nullptr && entry != &nobody_)
      insert(entry);
  if (published) table_.store(tables_.back().get(), std::memory_order_release);
}

// As many lines as the table has slots: programs that have few entries ask for few shapes.
void OpIndex::grow_memo() {
  const std::size_t lines = std::clamp(tables_.back()->size(), kMinMemoLines, kMaxMemoLines);
  if (!memos_.empty() && memos_.back()->count() >= lines) return;
  memos_.push_back(std::make_unique<LookupMemo>(lines));
  memo_.store(*memos_.back(), std::memory_order_release);
}

}  // namespace purlin::cache
