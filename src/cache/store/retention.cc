// SPDX-License-Identifier: Apache-2.0
#include "cache/store/retention.h"

#include "base/byte_size.h"
#include "base/files.h"
#include "base/time.h"

#include <algorithm>
#include <map>

namespace purlin::cache {
namespace {

struct Forgettable {
  EntrySummary summary;
  bool current = false;
  bool spared = false;
  bool drop = false;
  std::vector<const StatusSummary*> statuses;  // that go with it
  std::uint64_t bytes = 0;                     // of all these records
};

// How many bytes of the file each record takes, by its offset: up to where the next one begins.
std::map<std::uint64_t, std::uint64_t> record_sizes(const RecordSet& record_set,
                                                    std::uint64_t end) {
  std::map<std::uint64_t, std::uint64_t> sizes;
  record_set.each_entry([&](const EntrySummary& summary) { sizes[summary.offset] = 0; });
  record_set.each_status([&](const StatusSummary& summary) { sizes[summary.offset] = 0; });
  for (auto at = sizes.begin(); at != sizes.end(); ++at) {
    const auto next = std::next(at);
    const std::uint64_t until = next == sizes.end() ? end : next->first;
    at->second = until > at->first ? until - at->first : 0;
  }
  return sizes;
}

void drop_history(std::vector<Forgettable>& all, int keep) {
  std::map<Id128, std::vector<Forgettable*>> keys;
  for (Forgettable& candidate : all)
    if (!candidate.current) keys[candidate.summary.key].push_back(&candidate);
  for (auto& [key, history] : keys) {
    std::sort(history.begin(), history.end(), [](const Forgettable* a, const Forgettable* b) {
      return a->summary.recorded_ns > b->summary.recorded_ns;
    });
    for (std::size_t i = static_cast<std::size_t>(keep); i < history.size(); ++i)
      history[i]->drop = !history[i]->spared;
  }
}

void drop_beyond(std::vector<Forgettable>& all, const Retention& retention, std::uint64_t bytes) {
  std::vector<Forgettable*> order;
  std::size_t left = 0;
  for (Forgettable& candidate : all) {
    left += candidate.drop ? 0 : 1;
    bytes -= candidate.drop ? candidate.bytes : 0;
    if (!candidate.drop && !candidate.spared && (retention.even_current || !candidate.current))
      order.push_back(&candidate);
  }
  // History before what is served, then the oldest.
  std::sort(order.begin(), order.end(), [](const Forgettable* a, const Forgettable* b) {
    return std::tie(a->current, a->summary.recorded_ns, a->summary.record) <
           std::tie(b->current, b->summary.recorded_ns, b->summary.record);
  });
  for (Forgettable* candidate : order) {
    const bool too_many = retention.max_entries > 0 && left > retention.max_entries;
    const bool too_large = retention.max_bytes > 0 && bytes > retention.max_bytes;
    if (!too_many && !too_large) break;
    candidate->drop = true;
    bytes -= candidate->bytes;
    --left;
  }
}

}  // namespace

Result<RetentionPlan> plan_retention(const Store& store, const Retention& retention,
                                     std::int64_t now_ns) {
  std::set<Id128> current;
  for (const StoredEntry& entry : store.current()) current.insert(Id128::parse(entry.record));
  RetentionPlan plan;
  plan.bytes = bytes_in_use(store);
  const auto sizes = record_sizes(store.record_set(), plan.bytes);
  std::vector<Forgettable> all;
  store.record_set().each_entry([&](const EntrySummary& summary) {
    Forgettable candidate{summary, current.count(summary.record) > 0,
                          summary.record == retention.spare};
    candidate.bytes = sizes.at(summary.offset);
    const StatusSummary* standing = store.record_set().standing(summary.record);
    store.record_set().each_status_of(summary.record, [&](const StatusSummary& status) {
      // What withdrew it stays.
      if (!is_served(standing->entry_state()) && status.record == standing->record) return;
      candidate.statuses.push_back(&status);
      candidate.bytes += sizes.at(status.offset);
    });
    all.push_back(std::move(candidate));
  });

  if (retention.history >= 0) drop_history(all, retention.history);
  if (retention.older_than_s > 0)
    for (Forgettable& candidate : all)
      if (!candidate.spared && (retention.even_current || !candidate.current) &&
          static_cast<double>(now_ns - candidate.summary.recorded_ns) / 1e9 >
              retention.older_than_s)
        candidate.drop = true;
  drop_beyond(all, retention, plan.bytes);

  plan.bytes_left = plan.bytes;
  for (const Forgettable& candidate : all) {
    if (!candidate.drop) {
      ++plan.left;
      continue;
    }
    plan.drop.insert(candidate.summary.record.hex());
    ++plan.entries;
    plan.current += candidate.current ? 1 : 0;
    plan.bytes_left -= candidate.bytes;
    for (const StatusSummary* status : candidate.statuses) plan.drop.insert(status->record.hex());
    plan.statuses += candidate.statuses.size();
  }
  return plan;
}

Result<std::uint64_t> cache_quota() {
  const std::string text = environment_variable("PURLIN_CACHE_QUOTA");
  if (text.empty()) return std::uint64_t{0};
  if (const std::optional<std::uint64_t> bytes = parse_bytes(text)) return *bytes;
  return error(Code::kInvalid, "PURLIN_CACHE_QUOTA '{}' is not a size such as 64M or 2GiB", text);
}

std::uint64_t bytes_in_use(const Store& store) {
  return file_size(join_path(store.directory(), "entries.log")).value_or(std::uint64_t{0});
}

Status hold_quota(Store& store, std::uint64_t quota, const Id128& written) {
  if (quota == 0 || bytes_in_use(store) <= quota) return Status::ok();
  Retention retention;
  retention.max_bytes = std::max<std::uint64_t>(quota - quota / 8, 1);
  retention.even_current = true;
  retention.spare = written;
  PURLIN_ASSIGN(const RetentionPlan plan,
                plan_retention(store, retention, system_clock().wall_ns()));
  if (plan.drop.empty()) return Status::ok();
  return store.rewrite([&](const CacheRecord& record) { return plan.drop.count(record.id) == 0; });
}

}  // namespace purlin::cache
