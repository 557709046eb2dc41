// SPDX-License-Identifier: Apache-2.0
// RecordSet: the summaries of all records of a store: those of an index, and those that came after
// it.
//
// Owned by a Store; one thread. Positions handed out live until the next add, adopt or clear.
// Cannot fail.
#pragma once

#include "cache/store/record_summary.h"
#include "cache/store/summary_index.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::cache {

class RecordSet {
 public:
  using EntryVisitor = std::function<void(const EntrySummary&)>;
  using StatusVisitor = std::function<void(const StatusSummary&)>;

  // Starts over with the summaries of an index.
  void adopt(std::shared_ptr<const SummaryIndex> base);
  void add(const EntrySummary& summary);  // known ones are left alone
  void add(const StatusSummary& summary);
  void clear();
  // All summaries as an image.
  std::string encode(const IndexHead& head) const;

  std::size_t entries() const { return entries_.size() + (base_ ? base_->entries().size() : 0); }
  std::size_t statuses() const { return statuses_.size() + (base_ ? base_->statuses().size() : 0); }
  // Positions that are in no index yet.
  std::size_t pending() const { return entries_.size() + statuses_.size(); }

  bool has(const Id128& record) const {
    return entry(record) != nullptr || status(record) != nullptr;
  }
  // nullptr without such a record.
  const EntrySummary* entry(const Id128& record) const;
  const StatusSummary* status(const Id128& record) const;
  // The latest about an entry record.
  const StatusSummary* standing(const Id128& record) const;
  bool served(const Id128& record) const;
  // Whether the entry was checked again under that toolkit and driver.
  bool validated(const Id128& record, std::uint32_t toolkit, std::uint32_t driver) const;

  void each_of_key(std::uint64_t group, const Id128& key, const EntryVisitor& visit) const;
  void each_of_group(std::uint64_t group, const EntryVisitor& visit) const;
  void each_entry(const EntryVisitor& visit) const;
  void each_status(const StatusVisitor& visit) const;
  void each_status_of(const Id128& record, const StatusVisitor& visit) const;

 private:
  using Positions = std::vector<std::uint32_t>;
  std::shared_ptr<const SummaryIndex> base_;
  std::vector<EntrySummary> entries_;
  std::vector<StatusSummary> statuses_;
  std::unordered_map<Id128, std::uint32_t, Id128Hash> entry_of_, status_of_;  // by record
  std::unordered_map<Id128, Positions, Id128Hash> of_key_, of_target_;
  std::unordered_map<std::uint64_t, Positions> of_group_;
};

}  // namespace purlin::cache
