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

EntrySummary summary_of(const Entry& entry, const Id128& record, std::uint64_t offset) {
  EntrySummary summary;
  summary.record = record;
  summary.key = Id128::parse(entry.key.id());
  summary.group = group_of(entry.key);
  summary.offset = offset;
  summary.time_ms = entry.time_ms;
  summary.recorded_ns = parse_rfc3339(entry.recorded_at).value_or(0);
  summary.problem = problem_hash(entry.problem);
  summary.volume = 1;
  for (const auto& item : entry.problem.items()) summary.volume *= static_cast<double>(item.second);
  summary.fields = field_hashes(entry.key);
  summary.verified = entry.verified ? 1 : 0;
  return summary;
}

StatusSummary summary_of(const EntryStatus& status, const Id128& record, std::uint64_t offset) {
  StatusSummary summary;
  summary.target = Id128::parse(status.record);
  summary.record = record;
  summary.at_ns = status.at_ns();
  summary.offset = offset;
  summary.state = static_cast<std::uint32_t>(status.state);
  summary.toolkit = field_hash(status.toolkit);
  summary.driver = field_hash(status.driver);
  return summary;
}

bool better(const EntrySummary& a, const EntrySummary& b) {
  const auto rank = [](const EntrySummary& summary) {
    const double time =
        summary.time_ms > 0 ? summary.time_ms : std::numeric_limits<double>::infinity();
    return std::tuple(summary.verified == 0, -summary.volume, time, -summary.recorded_ns,
                      summary.record);
  };
  return rank(a) < rank(b);
}

}  // namespace purlin::cache
