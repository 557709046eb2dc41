// SPDX-License-Identifier: Apache-2.0
// Catalog: what a store knows of each record without reading it: a row of fixed size.
//
// Rows answer who is served: the key's fields as hashes, the time, the state. Records are read from
// the log only once a row was chosen, and checked against it, so that a hash that collides or a row
// that lies costs a reread and never a wrong answer. Owned by a Store; one thread. Cannot fail.
#pragma once

#include "cache/record.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::cache {

constexpr std::size_t kKeyFields = 11;
constexpr std::size_t kMaxDimensions = 8;
using FieldHashes = std::array<std::uint32_t, kKeyFields>;  // 0 = an empty field
FieldHashes field_hashes(const CacheKey& key);
std::uint32_t field_hash(std::string_view text);
// Of op, kernel, backend and arch: what no lookup ever crosses.
std::uint64_t group_of(const CacheKey& key);
std::uint64_t problem_hash(const ProblemShape& problem);

struct EntryRow {
  Id128 record, key;
  std::uint64_t group = 0;
  std::uint64_t offset = 0;  // in the log
  double time_ms = 0;        // 0 = not measured
  std::int64_t recorded_ns = 0;
  std::uint64_t problem = 0;  // hash
  double volume = 0;          // product of the extents
  FieldHashes fields{};
  std::uint32_t verified = 0;
};
static_assert(sizeof(EntryRow) == 128);

struct StatusRow {
  Id128 target, record;
  std::int64_t at_ns = 0;
  std::uint64_t offset = 0;
  EntryState state = EntryState::kActive;
  std::uint32_t toolkit = 0, driver = 0;  // hashes
  std::uint32_t reserved = 0;
};
static_assert(sizeof(StatusRow) == 64);

EntryRow row_of(const Entry& entry, const Id128& record, std::uint64_t offset);
StatusRow row_of(const EntryStatus& status, const Id128& record, std::uint64_t offset);

// The order of a key's entries, best first: verified, measured at the larger problem (times of
// different shapes do not compare), faster, later, by id.
bool better(const EntryRow& a, const EntryRow& b);

class Catalog {
 public:
  using EntryVisitor = std::function<void(const EntryRow&)>;
  using StatusVisitor = std::function<void(const StatusRow&)>;

  void add(const EntryRow& row);
  void add(const StatusRow& row);
  void clear();

  std::size_t entries() const { return entries_.size(); }
  std::size_t statuses() const { return statuses_.size(); }
  bool has(const Id128& record) const;
  // nullptr where there is none.
  const EntryRow* entry(const Id128& record) const;
  const StatusRow* status(const Id128& record) const;
  // The latest about an entry record.
  const StatusRow* standing(const Id128& record) const;
  bool served(const Id128& record) const;
  // Whether the entry was validated under another environment than its own.
  bool validated(const Id128& record, std::uint32_t toolkit, std::uint32_t driver) const;

  void each_of_key(const Id128& key, const EntryVisitor& visit) const;
  void each_of_group(std::uint64_t group, const EntryVisitor& visit) const;
  void each_entry(const EntryVisitor& visit) const;
  void each_status(const StatusVisitor& visit) const;
  void each_status_of(const Id128& record, const StatusVisitor& visit) const;

 private:
  using Rows = std::vector<std::uint32_t>;
  std::vector<EntryRow> entries_;
  std::vector<StatusRow> statuses_;
  std::unordered_map<Id128, std::uint32_t, Id128Hash> entry_of_, status_of_;  // by record
  std::unordered_map<Id128, Rows, Id128Hash> of_key_, of_target_;
  std::unordered_map<std::uint64_t, Rows> of_group_;
};

}  // namespace purlin::cache
