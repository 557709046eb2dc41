// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/live_slots.h"

#include "base/hash.h"
#include "base/time.h"
#include "store/sketch_bytes.h"

#include <algorithm>

namespace purlin::store {
namespace {

// Hours that a question used so long ago may go for another one.
constexpr std::int64_t kIdleSlotNs = 60'000'000'000;
// Commits that no question has taken up: the hour is then loaded again.
constexpr std::size_t kMaxCommits = 256;

}  // namespace

std::size_t LiveSlots::Table::Hash::operator()(const Ids& ids) const {
  return hash64(ids.data(), sizeof ids);
}

std::size_t LiveSlots::Table::bytes() const {
  return sketch_bytes_ + rows_.size() * (sizeof(Row) + sizeof(Ids) + 4 * sizeof(void*));
}

LiveSlots::Row& LiveSlots::Table::row_of(const Ids& ids) {
  const auto [at, is_new] = places_.emplace(ids, rows_.size());
  if (is_new) {
    rows_.emplace_back().ids = ids;
    last_entry_ = std::max(last_entry_, *std::max_element(ids.begin(), ids.end()));
  }
  return rows_[at->second];
}

bool LiveSlots::Table::add(const Ids& ids, double launches, double recorded,
                           std::string_view sketch) {
  Row& row = row_of(ids);
  row.launches += launches;
  row.recorded += recorded;
  sketch_bytes_ -= row.sketch.size();
  BucketSum sum;
  if (!sum.add(sketch) || (!row.sketch.empty() && !sum.add(row.sketch))) return false;
  const Sketch total = sum.sketch();
  row.sum_ns = total.total_ns();
  row.sketch = row.sketch.empty() ? std::string(sketch) : store::sketch_bytes(total);
  sketch_bytes_ += row.sketch.size();
  return true;
}

bool LiveSlots::Table::add(const Added& added) {
  return add(added.ids, added.launches, added.recorded, store::sketch_bytes(added.sketch));
}

std::shared_ptr<LiveSlots::Slot> LiveSlots::slot_of(const std::string& path, int slot) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Slot>& found = slots_[{path, slot}];
  if (!found) found = std::make_shared<Slot>();
  found->used_ns = system_clock().monotonic_ns();
  return found;
}

// With the slot's lock. What follows the table's revision is added; a gap drops the table.
void LiveSlots::catch_up(Slot& slot) {
  std::vector<Commit> commits;
  {
    const std::lock_guard lock(slot.commits_mutex);
    commits.swap(slot.commits);
  }
  for (const Commit& commit : commits) {
    if (!slot.table || commit.revision <= slot.table->revision_) continue;
    const bool follows = commit.revision == slot.table->revision_ + 1 && commit.rows.has_value();
    if (!follows || !std::all_of(commit.rows->begin(), commit.rows->end(),
                                 [&](const Added& added) { return slot.table->add(added); })) {
      slot.table.reset();
      return;
    }
    slot.table->revision_ = commit.revision;
  }
}

// Others go that no question used lately; else the slot itself.
bool LiveSlots::make_room(const std::shared_ptr<Slot>& slot) {
  const std::lock_guard lock(mutex_);
  slot->bytes = slot->table->bytes();
  std::size_t bytes = 0;
  for (const auto& [key, one] : slots_) bytes += one->bytes;
  const std::int64_t now = system_clock().monotonic_ns();
  while (bytes > max_bytes_) {
    auto oldest = slots_.end();
    for (auto at = slots_.begin(); at != slots_.end(); ++at)
      if (at->second != slot && at->second->bytes > 0 && now - at->second->used_ns > kIdleSlotNs &&
          (oldest == slots_.end() || at->second->used_ns < oldest->second->used_ns))
        oldest = at;
    if (oldest == slots_.end()) {
      slot->bytes = 0;
      return false;
    }
    bytes -= oldest->second->bytes;
    slots_.erase(oldest);
  }
  return true;
}

Result<bool> LiveSlots::use(const std::string& path, int slot,
                            const std::function<Result<Table>()>& load,
                            const std::function<Status(const Table&)>& use) {
  // Known to the writer before the file is read, so that no commit is missed.
  const std::shared_ptr<Slot> of = slot_of(path, slot);
  const std::lock_guard lock(of->mutex);
  if (of->too_large.load()) return false;
  catch_up(*of);
  if (!of->table) {
    PURLIN_ASSIGN(of->table, load());
    if (of->table->bytes() > max_bytes_ / 2 || !make_room(of)) {
      of->too_large.store(of->table->bytes() > max_bytes_ / 2);
      of->table.reset();
      return false;
    }
    catch_up(*of);
    if (!of->table) return false;  // a commit since then was not collected
  } else if (of->table->bytes() > of->bytes + of->bytes / 8 && !make_room(of)) {
    of->table.reset();
    return false;
  }
  PURLIN_TRY(use(*of->table));
  return true;
}

std::set<int> LiveSlots::known(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  std::set<int> slots;
  for (const auto& [key, slot] : slots_)
    if (key.first == path && !slot->too_large.load()) slots.insert(key.second);
  return slots;
}

void LiveSlots::add(const std::string& path, int slot, std::int64_t revision,
                    std::optional<std::vector<Added>> rows) {
  std::shared_ptr<Slot> of;
  {
    const std::lock_guard lock(mutex_);
    const auto found = slots_.find({path, slot});
    if (found == slots_.end()) return;
    of = found->second;
  }
  std::size_t waiting = 0;
  {
    const std::lock_guard lock(of->commits_mutex);
    of->commits.push_back({revision, std::move(rows)});
    waiting = of->commits.size();
  }
  // Here and not in the next question, unless one is under way.
  const std::unique_lock lock(of->mutex, std::try_to_lock);
  if (lock.owns_lock()) {
    catch_up(*of);
  } else if (waiting > kMaxCommits) {
    const std::lock_guard all(mutex_);
    slots_.erase({path, slot});
  }
}

void LiveSlots::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  for (auto at = slots_.begin(); at != slots_.end();)
    at = at->first.first == path ? slots_.erase(at) : std::next(at);
}

}  // namespace purlin::store
