// SPDX-License-Identifier: Apache-2.0
#include "cache/store/record_set.h"

#include <algorithm>
#include <tuple>

namespace purlin::cache {

void Catalog::adopt(std::shared_ptr<const RowIndex> base) {
  *this = Catalog();
  base_ = std::move(base);
}

std::string Catalog::encode(const IndexHead& head) const {
  std::vector<EntryRow> rows;
  std::vector<StatusRow> status_rows;
  rows.reserve(entries());
  status_rows.reserve(statuses());
  each_entry([&](const EntryRow& row) { rows.push_back(row); });
  each_status([&](const StatusRow& row) { status_rows.push_back(row); });
  return RowIndex::encode(head, rows, status_rows);
}

void Catalog::add(const EntryRow& row) {
  if (entry(row.record) != nullptr) return;
  const auto at = static_cast<std::uint32_t>(entries_.size());
  entry_of_.emplace(row.record, at);
  entries_.push_back(row);
  of_key_[row.key].push_back(at);
  of_group_[row.group].push_back(at);
}

void Catalog::add(const StatusRow& row) {
  if (status(row.record) != nullptr) return;
  const auto at = static_cast<std::uint32_t>(statuses_.size());
  status_of_.emplace(row.record, at);
  statuses_.push_back(row);
  of_target_[row.target].push_back(at);
}

void Catalog::clear() { *this = Catalog(); }

const EntryRow* Catalog::entry(const Id128& record) const {
  if (const auto found = entry_of_.find(record); found != entry_of_.end())
    return &entries_[found->second];
  return base_ == nullptr ? nullptr : base_->entry(record);
}

const StatusRow* Catalog::status(const Id128& record) const {
  if (const auto found = status_of_.find(record); found != status_of_.end())
    return &statuses_[found->second];
  return base_ == nullptr ? nullptr : base_->status(record);
}

const StatusRow* Catalog::standing(const Id128& record) const {
  const StatusRow* latest = nullptr;
  each_status_of(record, [&](const StatusRow& row) {
    if (latest == nullptr ||
        std::tie(latest->at_ns, latest->record) < std::tie(row.at_ns, row.record))
      latest = &row;
  });
  return latest;
}

bool Catalog::served(const Id128& record) const {
  const StatusRow* latest = standing(record);
  return latest == nullptr || is_served(latest->entry_state());
}

bool Catalog::validated(const Id128& record, std::uint32_t toolkit, std::uint32_t driver) const {
  bool found = false;
  each_status_of(record, [&](const StatusRow& row) {
    found = found || (row.entry_state() == EntryState::kValidated && row.toolkit == toolkit &&
                      row.driver == driver);
  });
  return found;
}

void Catalog::each_of_key(std::uint64_t group, const Id128& key, const EntryVisitor& visit) const {
  if (base_ != nullptr)
    for (const EntryRow& row : base_->of_key(group, key)) visit(row);
  if (const auto found = of_key_.find(key); found != of_key_.end())
    for (const std::uint32_t at : found->second) visit(entries_[at]);
}

void Catalog::each_of_group(std::uint64_t group, const EntryVisitor& visit) const {
  if (base_ != nullptr)
    for (const EntryRow& row : base_->of_group(group)) visit(row);
  if (const auto found = of_group_.find(group); found != of_group_.end())
    for (const std::uint32_t at : found->second) visit(entries_[at]);
}

void Catalog::each_entry(const EntryVisitor& visit) const {
  if (base_ != nullptr)
    for (const EntryRow& row : base_->entries()) visit(row);
  for (const EntryRow& row : entries_) visit(row);
}

void Catalog::each_status(const StatusVisitor& visit) const {
  if (base_ != nullptr)
    for (const StatusRow& row : base_->statuses()) visit(row);
  for (const StatusRow& row : statuses_) visit(row);
}

void Catalog::each_status_of(const Id128& record, const StatusVisitor& visit) const {
  if (base_ != nullptr)
    for (const StatusRow& row : base_->of_target(record)) visit(row);
  if (const auto found = of_target_.find(record); found != of_target_.end())
    for (const std::uint32_t at : found->second) visit(statuses_[at]);
}

}  // namespace purlin::cache
