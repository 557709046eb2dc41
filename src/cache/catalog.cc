// SPDX-License-Identifier: Apache-2.0
#include "cache/catalog.h"

#include "base/hash.h"
#include "base/time.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace purlin::cache {
namespace {

Id128 parse_hash(std::string_view text) { return Id128::parse(hash128_hex(text)); }

}  // namespace

std::uint32_t field_hash(std::string_view text) {
  if (text.empty()) return 0;
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(hash64(text)));
}

FieldHashes field_hashes(const CacheKey& key) {
  FieldHashes hashes{};
  std::size_t i = 0;
  for (const auto& [name, value] : key.fields()) hashes[i++] = field_hash(value);
  return hashes;
}

std::uint64_t group_of(const CacheKey& key) {
  FieldHasher hasher;
  hasher.add(key.op).add(key.kernel).add(key.backend).add(key.arch);
  return parse_hash(hasher.hex()).low;
}

std::uint64_t problem_hash(const ProblemShape& problem) { return hash64(problem.text()); }

EntryRow row_of(const Entry& entry, const Id128& record, std::uint64_t offset) {
  EntryRow row;
  row.record = record;
  row.key = Id128::parse(entry.key.id());
  row.group = group_of(entry.key);
  row.offset = offset;
  row.time_ms = entry.time_ms;
  row.recorded_ns = parse_rfc3339(entry.recorded_at).value_or(0);
  row.problem = problem_hash(entry.problem);
  row.volume = 1;
  for (const auto& item : entry.problem.items()) row.volume *= static_cast<double>(item.second);
  row.fields = field_hashes(entry.key);
  row.verified = entry.verified ? 1 : 0;
  return row;
}

StatusRow row_of(const EntryStatus& status, const Id128& record, std::uint64_t offset) {
  StatusRow row;
  row.target = Id128::parse(status.record);
  row.record = record;
  row.at_ns = status.at_ns();
  row.offset = offset;
  row.state = status.state;
  row.toolkit = field_hash(status.toolkit);
  row.driver = field_hash(status.driver);
  return row;
}

bool better(const EntryRow& a, const EntryRow& b) {
  const auto rank = [](const EntryRow& row) {
    const double time = row.time_ms > 0 ? row.time_ms : std::numeric_limits<double>::infinity();
    return std::tuple(row.verified == 0, -row.volume, time, -row.recorded_ns, row.record);
  };
  return rank(a) < rank(b);
}

void Catalog::add(const EntryRow& row) {
  const auto at = static_cast<std::uint32_t>(entries_.size());
  if (!entry_of_.emplace(row.record, at).second) return;
  entries_.push_back(row);
  of_key_[row.key].push_back(at);
  of_group_[row.group].push_back(at);
}

void Catalog::add(const StatusRow& row) {
  const auto at = static_cast<std::uint32_t>(statuses_.size());
  if (!status_of_.emplace(row.record, at).second) return;
  statuses_.push_back(row);
  of_target_[row.target].push_back(at);
}

void Catalog::clear() { *this = Catalog(); }

bool Catalog::has(const Id128& record) const {
  return entry_of_.count(record) > 0 || status_of_.count(record) > 0;
}

const EntryRow* Catalog::entry(const Id128& record) const {
  const auto found = entry_of_.find(record);
  return found == entry_of_.end() ? nullptr : &entries_[found->second];
}

const StatusRow* Catalog::status(const Id128& record) const {
  const auto found = status_of_.find(record);
  return found == status_of_.end() ? nullptr : &statuses_[found->second];
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
  return latest == nullptr || is_served(latest->state);
}

bool Catalog::validated(const Id128& record, std::uint32_t toolkit, std::uint32_t driver) const {
  bool found = false;
  each_status_of(record, [&](const StatusRow& row) {
    found = found ||
            (row.state == EntryState::kValidated && row.toolkit == toolkit && row.driver == driver);
  });
  return found;
}

void Catalog::each_of_key(const Id128& key, const EntryVisitor& visit) const {
  if (const auto found = of_key_.find(key); found != of_key_.end())
    for (const std::uint32_t at : found->second) visit(entries_[at]);
}

void Catalog::each_of_group(std::uint64_t group, const EntryVisitor& visit) const {
  if (const auto found = of_group_.find(group); found != of_group_.end())
    for (const std::uint32_t at : found->second) visit(entries_[at]);
}

void Catalog::each_entry(const EntryVisitor& visit) const {
  for (const EntryRow& row : entries_) visit(row);
}

void Catalog::each_status(const StatusVisitor& visit) const {
  for (const StatusRow& row : statuses_) visit(row);
}

void Catalog::each_status_of(const Id128& record, const StatusVisitor& visit) const {
  if (const auto found = of_target_.find(record); found != of_target_.end())
    for (const std::uint32_t at : found->second) visit(statuses_[at]);
}

}  // namespace purlin::cache
