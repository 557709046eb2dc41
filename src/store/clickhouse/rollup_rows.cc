// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/rollup_rows.h"

#include "base/hash.h"
#include "store/arrival.h"
#include "store/calendar.h"
#include "store/clickhouse/dictionary.h"
#include "store/clickhouse/schema.h"

#include <cstring>
#include <iterator>
#include <vector>

namespace purlin::store {

BatchName batch_name(const HashedBatch& batch) {
  const std::string bytes = short_hash(batch.hash);
  BatchName name;
  std::memcpy(&name.high, bytes.data(), 8);
  std::memcpy(&name.low, bytes.data() + 8, 8);
  return name;
}

std::uint64_t source_id(const Batch& batch) {
  return entry_id(Kind::kUnit, join_fields({batch.node, batch.boot}));
}

void RollupRows::add(const HashedBatch& hashed, const BatchLabels& labels, std::int64_t day) {
  const Batch& batch = hashed.batch;
  node_ = hash64(batch.node);
  std::vector<std::uint64_t> ids;
  for (const auto& [kind, text] : labels.entries) ids.push_back(entry_id(kind, text));
  const BatchName name = batch_name(hashed);
  const bool home = day_begin(batch.begin_ns) == day;
  begin({kBatchKernel, name.high, name.low, source_id(batch), batch.sequence, home ? 1U : 0U}, day,
        1, 0, home ? batch.collector_cpu_ns : 0);
  rows_.varint(0);
  rows_.varint(0);
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    if (day_begin(batch.rows[i].hour_ns) != day) continue;
    std::array<std::uint64_t, kSeriesKinds> key;
    for (std::size_t kind = 0; kind < kSeriesKinds; ++kind)
      key[kind] = ids[labels.rows[i].entries[kind]];
    add_row(batch.rows[i], key);
  }
  for (std::size_t i = 0; i < batch.coverage.size(); ++i) {
    const BatchLabels::Coverage& of = labels.coverage[i];
    if (day_begin(batch.coverage[i].hour_ns) == day)
      add_coverage(batch.coverage[i],
                   {kCoverageKernel, ids[of.why], ids[of.platform], 0, 0, ids[of.unit]});
  }
}

void RollupRows::begin(const Key& key, std::int64_t hour_ns, double launches, double recorded,
                       double sum_ns) {
  ++count_;
  for (const std::uint64_t id : key) rows_.fixed64(id);
  rows_.fixed32(static_cast<std::uint32_t>(hour_ns / kHourNs));
  rows_.fixed64(0);
  rows_.fixed64(node_);
  for (const double value : {launches, recorded, sum_ns}) rows_.real(value);
}

void RollupRows::add_row(const BatchRow& row, const Key& key) {
  const Sketch& sketch = row.duration;
  begin(key, row.hour_ns, sketch.count(), row.recorded, sketch.total_ns());
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < sketch.buckets().size(); ++i)
    if (sketch.buckets()[i] > 0) used.push_back(i);
  rows_.varint(used.size());
  for (const std::size_t i : used)
    rows_.fixed32(static_cast<std::uint32_t>(sketch.first_bucket()) +
                  static_cast<std::uint32_t>(i));
  rows_.varint(used.size());
  for (const std::size_t i : used) rows_.real(sketch.buckets()[i]);
}

void RollupRows::add_coverage(const BatchCoverage& c, const Key& key) {
  const double amounts[] = {
      c.busy_ns,     c.seen_ns,       c.launches_seen, c.launches_lost, c.launches_sampled_out,
      c.overhead_ns, c.bad_timestamps};
  begin(key, c.hour_ns, 1, 0, 0);
  rows_.varint(std::size(amounts));
  for (std::uint32_t i = 1; i <= std::size(amounts); ++i) rows_.fixed32(i);
  rows_.varint(std::size(amounts));
  for (const double amount : amounts) rows_.real(amount);
}

}  // namespace purlin::store
