// SPDX-License-Identifier: Apache-2.0
// Summaries: what a store knows of each record without reading it, in a fixed size.
//
// Summaries answer who is served: the key's fields as hashes, the time, the state. Records are read
// from the log only once a summary was chosen, and checked against it, so that a hash that collides
// or a summary that lies costs a reread and never a wrong answer. Plain values, as they stand in
// the index file (docs/formats/cache.md). Cannot fail.
#pragma once

#include "cache/store/cache_record.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace purlin::cache {

constexpr std::size_t kMaxDimensions = 8;
using FieldHashes = std::array<std::uint32_t, kKeyFields>;  // 0 = an empty field
FieldHashes field_hashes(const CacheKey& key);
std::uint32_t field_hash(std::string_view text);
// Of op, kernel, backend and arch: what no lookup ever crosses.
std::uint64_t group_of(const CacheKey& key);
std::uint64_t problem_hash(const ProblemShape& problem);

struct EntrySummary {
  Id128 record, key;
  std::uint64_t group = 0;
  std::uint64_t offset = 0;  // in the log
  double time_ms = 0;        // 0 = not measured
  std::int64_t recorded_ns = 0;
  std::uint64_t problem = 0;  // hash
  double volume = 0;          // product of the extents
  FieldHashes fields{};
  std::uint32_t verified = 0, reserved = 0;
};
static_assert(sizeof(EntrySummary) == 136);

struct StatusSummary {
  Id128 target, record;
  std::int64_t at_ns = 0;
  std::uint64_t offset = 0;
  std::uint32_t state = 0;                // an EntryState
  std::uint32_t toolkit = 0, driver = 0;  // hashes
  std::uint32_t reserved = 0;

  EntryState entry_state() const { return static_cast<EntryState>(state & 3u); }
};
static_assert(sizeof(StatusSummary) == 64);

EntrySummary summary_of(const Entry& entry, const Id128& record, std::uint64_t offset);
StatusSummary summary_of(const EntryStatus& status, const Id128& record, std::uint64_t offset);

// The order of a key's entries, best first: verified, measured at the larger problem (times of
// different shapes do not compare), faster, later, by id.
bool better(const EntrySummary& a, const EntrySummary& b);

}  // namespace purlin::cache
