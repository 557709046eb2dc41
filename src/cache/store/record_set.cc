// SPDX-License-Identifier: Apache-2.0
#include "cache/store/record_set.h"

#include <algorithm>
#include <tuple>

namespace purlin::cache {

void RecordSet::adopt(std::shared_ptr<const SummaryIndex> base) {
  *this = RecordSet();
  base_ = std::move(base);
}

std::string RecordSet::encode(const IndexHead& head) const {
  std::vector<EntrySummary> summaries;
  std::vector<StatusSummary> status_summaries;
  summaries.reserve(entries());
  status_summaries.reserve(statuses());
  each_entry([&](const EntrySummary& summary) { summaries.push_back(summary); });
  each_status([&](const StatusSummary& summary) { status_summaries.push_back(summary); });
  return SummaryIndex::encode(head, summaries, status_summaries);
}

void RecordSet::add(const EntrySummary& summary) {
  if (entry(summary.record) != nullptr) return;
  const auto at = static_cast<std::uint32_t>(entries_.size());
  entry_of_.emplace(summary.record, at);
  entries_.push_back(summary);
  of_key_[summary.key].push_back(at);
  of_group_[summary.group].push_back(at);
}

void RecordSet::add(const StatusSummary& summary) {
  if (status(summary.record) != nullptr) return;
  const auto at = static_cast<std::uint32_t>(statuses_.size());
  status_of_.emplace(summary.record, at);
  statuses_.push_back(summary);
  of_target_[summary.target].push_back(at);
}

void RecordSet::clear() { *this = RecordSet(); }

const EntrySummary* RecordSet::entry(const Id128& record) const {
  if (const auto found = entry_of_.find(record); found != entry_of_.end())
    return &entries_[found->second];
  return base_ == nullptr ? nullptr : base_->entry(record);
}

const StatusSummary* RecordSet::status(const Id128& record) const {
  if (const auto found = status_of_.find(record); found != status_of_.end())
    return &statuses_[found->second];
  return base_ == nullptr ? nullptr : base_->status(record);
}

const StatusSummary* RecordSet::standing(const Id128& record) const {
  const StatusSummary* latest = nullptr;
  each_status_of(record, [&](const StatusSummary& summary) {
    if (latest == nullptr ||
        std::tie(latest->at_ns, latest->record) < std::tie(summary.at_ns, summary.record))
      latest = &summary;
  });
  return latest;
}

bool RecordSet::served(const Id128& record) const {
  const StatusSummary* latest = standing(record);
  return latest == nullptr || is_served(latest->entry_state());
}

bool RecordSet::validated(const Id128& record, std::uint32_t toolkit, std::uint32_t driver) const {
  bool found = false;
  each_status_of(record, [&](const StatusSummary& summary) {
    found = found || (summary.entry_state() == EntryState::kValidated &&
                      summary.toolkit == toolkit && summary.driver == driver);
  });
  return found;
}

void RecordSet::each_of_key(std::uint64_t group, const Id128& key,
                            const EntryVisitor& visit) const {
  if (base_ != nullptr)
    for (const EntrySummary& summary : base_->of_key(group, key)) visit(summary);
  if (const auto found = of_key_.find(key); found != of_key_.end())
    for (const std::uint32_t at : found->second) visit(entries_[at]);
}

void RecordSet::each_of_group(std::uint64_t group, const EntryVisitor& visit) const {
  if (base_ != nullptr)
    for (const EntrySummary& summary : base_->of_group(group)) visit(summary);
  if (const auto found = of_group_.find(group); found != of_group_.end())
    for (const std::uint32_t at : found->second) visit(entries_[at]);
}

void RecordSet::each_entry(const EntryVisitor& visit) const {
  if (base_ != nullptr)
    for (const EntrySummary& summary : base_->entries()) visit(summary);
  for (const EntrySummary& summary : entries_) visit(summary);
}

void RecordSet::each_status(const StatusVisitor& visit) const {
  if (base_ != nullptr)
    for (const StatusSummary& summary : base_->statuses()) visit(summary);
  for (const StatusSummary& summary : statuses_) visit(summary);
}

void RecordSet::each_status_of(const Id128& record, const StatusVisitor& visit) const {
  if (base_ != nullptr)
    for (const StatusSummary& summary : base_->of_target(record)) visit(summary);
  if (const auto found = of_target_.find(record); found != of_target_.end())
    for (const std::uint32_t at : found->second) visit(statuses_[at]);
}

}  // namespace purlin::cache
