// SPDX-License-Identifier: Apache-2.0
#include "cache/layers/merged_view.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace purlin::cache {

MergedView::Standing MergedView::standing(const Id128& record) const {
  Standing latest;
  for (const Store& store : stores_) {
    const StatusSummary* summary = store.record_set().standing(record);
    if (summary == nullptr ||
        (latest.summary != nullptr && std::tie(summary->at_ns, summary->record) <=
                                          std::tie(latest.summary->at_ns, latest.summary->record)))
      continue;
    latest = {summary, &store};
  }
  return latest;
}

bool MergedView::served(const Id128& record) const {
  const Standing latest = standing(record);
  return latest.summary == nullptr || is_served(latest.summary->entry_state());
}

bool MergedView::validated(const Id128& record, std::uint32_t toolkit, std::uint32_t driver) const {
  return std::any_of(stores_.begin(), stores_.end(), [&](const Store& store) {
    return store.record_set().validated(record, toolkit, driver);
  });
}

const EntrySummary* MergedView::entry(const Id128& record) const {
  for (const Store& store : stores_)
    if (const EntrySummary* summary = store.record_set().entry(record)) return summary;
  return nullptr;
}

std::deque<EntryReader> MergedView::readers(EntryParts parts, ConstraintCache& constraints) const {
  std::deque<EntryReader> all;
  for (const Store& store : stores_) all.emplace_back(store.log_path(), parts, constraints);
  return all;
}

std::vector<MergedView::Layered> MergedView::served(std::uint64_t group, const Id128& key,
                                                    std::deque<EntryReader>& readers) const {
  std::vector<Layered> all;
  std::unordered_set<std::string> taken;
  const auto is_served = [this](const Id128& record) { return served(record); };
  for (std::size_t layer = 0; layer < stores_.size(); ++layer)
    for (StoredEntry& stored : stores_[layer].served(group, key, is_served, &readers[layer])) {
      if (stores_.size() > 1 && !taken.insert(stored.record).second) continue;
      const Id128 record = Id128::parse(stored.record);
      for (const Store& other : stores_) {
        if (&other == &stores_[layer]) continue;
        std::vector<EntryStatus> more = other.statuses(record);
        std::move(more.begin(), more.end(), std::back_inserter(stored.statuses));
      }
      std::stable_sort(
          stored.statuses.begin(), stored.statuses.end(),
          [](const EntryStatus& a, const EntryStatus& b) { return a.at_ns() < b.at_ns(); });
      if (!stored.statuses.empty()) stored.state = stored.statuses.back().state;
      all.push_back({std::move(stored), layer});
    }
  return all;
}

}  // namespace purlin::cache
