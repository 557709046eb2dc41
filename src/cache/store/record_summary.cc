// SPDX-License-Identifier: Apache-2.0
#include "cache/store/record_summary.h"

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
  row.state = static_cast<std::uint32_t>(status.state);
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

}  // namespace purlin::cache
