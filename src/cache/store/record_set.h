// SPDX-License-Identifier: Apache-2.0
// Catalog: the rows of all records of a store: those of an index, and those that came after it.
//
// Owned by a Store; one thread. Rows handed out live until the next add, adopt or clear. Cannot
// fail.
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

class Catalog {
 public:
  using EntryVisitor = std::function<void(const EntryRow&)>;
  using StatusVisitor = std::function<void(const StatusRow&)>;

  // Starts over with the rows of an index.
  void adopt(std::shared_ptr<const RowIndex> base);
  void add(const EntryRow& row);  // known ones are left alone
  void add(const StatusRow& row);
  void clear();
  // All rows as an image.
  std::string encode(const IndexHead& head) const;

  std::size_t entries() const { return entries_.size() + (base_ ? base_->entries().size() : 0); }
  std::size_t statuses() const { return statuses_.size() + (base_ ? base_->statuses().size() : 0); }
  // Rows that are in no index yet.
  std::size_t pending() const { return entries_.size() + statuses_.size(); }

  bool has(const Id128& record) const {
    return entry(record) != nullptr || status(record) != nullptr;
  }
  // nullptr where there is none.
  const EntryRow* entry(const Id128& record) const;
  const StatusRow* status(const Id128& record) const;
  // The latest about an entry record.
  const StatusRow* standing(const Id128& record) const;
  bool served(const Id128& record) const;
  // Whether the entry was checked again under that toolkit and driver.
  bool validated(const Id128& record, std::uint32_t toolkit, std::uint32_t driver) const;

  void each_of_key(std::uint64_t group, const Id128& key, const EntryVisitor& visit) const;
  void each_of_group(std::uint64_t group, const EntryVisitor& visit) const;
  void each_entry(const EntryVisitor& visit) const;
  void each_status(const StatusVisitor& visit) const;
  void each_status_of(const Id128& record, const StatusVisitor& visit) const;

 private:
  using Rows = std::vector<std::uint32_t>;
  std::shared_ptr<const RowIndex> base_;
  std::vector<EntryRow> entries_;
  std::vector<StatusRow> statuses_;
  std::unordered_map<Id128, std::uint32_t, Id128Hash> entry_of_, status_of_;  // by record
  std::unordered_map<Id128, Rows, Id128Hash> of_key_, of_target_;
  std::unordered_map<std::uint64_t, Rows> of_group_;
};

}  // namespace purlin::cache
