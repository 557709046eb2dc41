// SPDX-License-Identifier: Apache-2.0
// RollupRows: rows of the table hours, of some batches in one day, as RowBinary. And the numbers by
// which the tables know a batch and its source.
//
// A plain value; one thread. Cannot fail.
#pragma once

#include "profile/format/wire.h"
#include "store/labels.h"
#include "store/store.h"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace purlin::store {

// Of an INSERT into a table of rollups, in the order that RollupRows writes.
constexpr const char* kRollupColumns =
    "(kernel, problem, platform, build, job, unit, hour, generation, node, launches, recorded, "
    "sum_ns, bucketsMap.bucket, bucketsMap.weight)";

struct BatchName {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const BatchName&) const = default;  // NOLINT(modernize-use-nullptr)
};
BatchName batch_name(const HashedBatch& batch);
std::uint64_t source_id(const Batch& batch);

class RollupRows {
 public:
  void add(const HashedBatch& hashed, const BatchLabels& labels, std::int64_t day);
  std::size_t count() const { return count_; }
  const std::string& bytes() const { return rows_.bytes(); }
  void clear() { rows_.clear(), count_ = 0; }

 private:
  using Key = std::array<std::uint64_t, kSeriesKinds>;
  void begin(const Key& key, std::int64_t hour_ns, double launches, double recorded, double sum_ns);
  void add_row(const BatchRow& row, const Key& key);
  void add_coverage(const BatchCoverage& coverage, const Key& key);

  profile::wire::Encoder rows_;
  std::size_t count_ = 0;
  std::uint64_t node_ = 0;
};

}  // namespace purlin::store
