// SPDX-License-Identifier: Apache-2.0
#include "cache/retention.h"

#include <algorithm>
#include <map>

namespace purlin::cache {
namespace {

struct Candidate {
  EntryRow row;
  bool current = false;
  bool drop = false;
};

void drop_history(std::vector<Candidate>& all, int keep) {
  std::map<Id128, std::vector<Candidate*>> keys;
  for (Candidate& candidate : all)
    if (!candidate.current) keys[candidate.row.key].push_back(&candidate);
  for (auto& [key, history] : keys) {
    std::sort(history.begin(), history.end(), [](const Candidate* a, const Candidate* b) {
      return a->row.recorded_ns > b->row.recorded_ns;
    });
    for (std::size_t i = static_cast<std::size_t>(keep); i < history.size(); ++i)
      history[i]->drop = true;
  }
}

void drop_beyond(std::vector<Candidate>& all, const Retention& retention) {
  std::vector<Candidate*> order;
  std::size_t left = 0;
  for (Candidate& candidate : all) {
    left += candidate.drop ? 0 : 1;
    if (!candidate.drop && (retention.even_current || !candidate.current))
      order.push_back(&candidate);
  }
  // History before what is served, then the oldest.
  std::sort(order.begin(), order.end(), [](const Candidate* a, const Candidate* b) {
    return std::tie(a->current, a->row.recorded_ns, a->row.record) <
           std::tie(b->current, b->row.recorded_ns, b->row.record);
  });
  for (Candidate* candidate : order) {
    if (left <= retention.max_entries) break;
    candidate->drop = true;
    --left;
  }
}

}  // namespace

Result<RetentionPlan> plan_retention(const Store& store, const Retention& retention,
                                     std::int64_t now_ns) {
  std::set<Id128> current;
  for (const StoredEntry& entry : store.current()) current.insert(Id128::parse(entry.record));
  std::vector<Candidate> all;
  store.catalog().each_entry([&](const EntryRow& row) {
    all.push_back({row, current.count(row.record) > 0});
  });

  if (retention.history >= 0) drop_history(all, retention.history);
  if (retention.older_than_s > 0)
    for (Candidate& candidate : all)
      if ((retention.even_current || !candidate.current) &&
          static_cast<double>(now_ns - candidate.row.recorded_ns) / 1e9 > retention.older_than_s)
        candidate.drop = true;
  if (retention.max_entries > 0) drop_beyond(all, retention);

  RetentionPlan plan;
  for (const Candidate& candidate : all) {
    if (!candidate.drop) {
      ++plan.left;
      continue;
    }
    plan.drop.insert(candidate.row.record.hex());
    ++plan.entries;
    plan.current += candidate.current ? 1 : 0;
    const StatusRow* standing = store.catalog().standing(candidate.row.record);
    store.catalog().each_status_of(candidate.row.record, [&](const StatusRow& status) {
      if (!is_served(standing->entry_state()) && status.record == standing->record) return;
      plan.drop.insert(status.record.hex());
      ++plan.statuses;
    });
  }
  return plan;
}

}  // namespace purlin::cache
