// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"
#include "store/clickhouse/engine.h"
#include "store/clickhouse/schema.h"
#include "store/shed_text.h"

#include <algorithm>

namespace purlin::store {
namespace {

using profile::wire::Decoder;
using profile::wire::Encoder;

// An insert of fewer rows than ClickHouse's block (1,048,576) is one part: all of it or nothing.
constexpr std::size_t kMaxRowsOfInsert = 500'000;

}  // namespace

// Later than any before it, also from another process.
std::uint64_t ClickhouseStore::next_version() {
  const auto now = static_cast<std::uint64_t>(system_clock().wall_ns());
  last_version_ = std::max(last_version_ + 1, now);
  return last_version_;
}

Status ClickhouseStore::keep_apart(const std::vector<const HashedBatch*>& wrong_clocks,
                                   const std::vector<const HashedBatch*>& too_old) {
  Encoder rows;
  for (const HashedBatch* hashed : too_old) {
    rows.text(hashed->batch.node);
    rows.text(hashed->batch.boot);
    rows.text(hashed->hash);
  }
  PURLIN_TRY(client().insert("too_old(node, boot, hash)", rows.bytes()));
  rows.clear();
  for (const HashedBatch* hashed : wrong_clocks) {
    PURLIN_ASSIGN(const std::string bytes, encode(hashed->batch));
    rows.text(hashed->hash);
    rows.text(hashed->batch.node);
    rows.text(hashed->batch.boot);
    rows.fixed64(static_cast<std::uint64_t>(hashed->batch.skew_ns));
    rows.text(bytes);
    rows.u8(0);
    rows.fixed64(next_version());
  }
  return client().insert("quarantine(hash, node, boot, skew_ns, batch, gone, version)",
                         rows.bytes());
}

Status ClickhouseStore::sort_out(const std::vector<HashedBatch>& batches,
                                 std::vector<Item>& items) {
  PURLIN_ASSIGN(const std::int64_t horizon, reader_.horizon_ns());
  std::vector<const HashedBatch*> wrong_clocks, too_old;
  for (const HashedBatch& hashed : batches) {
    Item& item = items.emplace_back();
    item.batch = &hashed;
    item.admission = admit(hashed, options_.max_skew_ns, horizon);
    item.status = item.admission.status;
    if (!item.status.is_ok()) continue;
    item.name = batch_name(hashed);
    if (item.admission.too_old) {
      item.outcome = Ingest::kTooOld;
      too_old.push_back(&hashed);
    }
    if (item.admission.quarantined) {
      PURLIN_ASSIGN(const std::int64_t times,
                    client().integer(fmt::format("SELECT toInt64(count()) FROM {{db}}.quarantine "
                                                 "WHERE hash = {}",
                                                 sql_text(hashed.hash))));
      item.outcome = times > 0 ? Ingest::kDuplicate : Ingest::kQuarantined;
      if (times == 0) wrong_clocks.push_back(&hashed);
    }
    if (item.admission.counts()) item.labels = labels_of(hashed.batch);
  }
  PURLIN_TRY(keep_apart(wrong_clocks, too_old));
  return add_raws(batches);
}

Result<std::set<BatchName>> ClickhouseStore::known(const std::vector<Item>& items,
                                                   std::int64_t day) {
  std::string list;
  for (const Item& item : items)
    if (item.waits_for(day)) list += (list.empty() ? "" : ",") + std::to_string(item.name.high);
  PURLIN_ASSIGN(const std::string rows,
                client().select(fmt::format("SELECT problem, platform FROM {{db}}.hours WHERE "
                                            "kernel = {} AND problem IN ({}) AND hour = {}",
                                            kBatchKernel, list, day / kHourNs)));
  std::set<BatchName> names;
  Decoder in(rows);
  while (!in.at_end()) {
    BatchName name;
    name.high = in.fixed64(), name.low = in.fixed64();
    names.insert(name);
  }
  if (in.failed()) return error(Code::kIo, "ClickHouse's answer is cut short");
  return names;
}

Status ClickhouseStore::add_day(std::int64_t day, std::vector<Item>& items) {
  PURLIN_ASSIGN(std::set<BatchName> there, known(items, day));
  RollupRows rows;
  std::vector<Item*> added;
  const auto send = [&]() -> Status {
    PURLIN_TRY(client().insert(std::string("hours") + kRollupColumns, rows.bytes()));
    for (Item* item : added) item->outcome = Ingest::kStored;
    rows.clear();
    added.clear();
    return Status::ok();
  };
  for (Item& item : items) {
    if (!item.waits_for(day) || !there.insert(item.name).second) continue;
    const std::size_t more = item.batch->batch.rows.size() + item.batch->batch.coverage.size() + 1;
    if (rows.count() > 0 && rows.count() + more > kMaxRowsOfInsert) PURLIN_TRY(send());
    PURLIN_TRY(dictionary_.write(client(), item.labels.entries));
    rows.add(*item.batch, item.labels, day);
    added.push_back(&item);
  }
  return send();
}

Status ClickhouseStore::add_sources(const std::vector<Item>& items) {
  Encoder rows;
  for (const Item& item : items) {
    if (!item.admission.counts() || item.outcome != Ingest::kStored) continue;
    const Batch& batch = item.batch->batch;
    rows.fixed64(source_id(batch));
    rows.fixed32(static_cast<std::uint32_t>(batch.begin_ns / kDayNs));
    rows.text(batch.node);
    rows.text(batch.boot);
    rows.text(batch.tool_version);
    for (const std::int64_t value :
         {batch.begin_ns, batch.end_ns, batch.sent_ns + batch.skew_ns, batch.skew_ns})
      rows.fixed64(static_cast<std::uint64_t>(value));
    rows.fixed64(batch.sequence);
    rows.fixed64(batch.collector_rss_bytes);
    rows.text(shed_text(batch));
  }
  return client().insert(
      "source(id, day, node, boot, tool_version, begin_ns, end_ns, received_ns, skew_ns, "
      "sequence, rss_bytes, shed)",
      rows.bytes());
}

std::vector<Result<Ingest>> ClickhouseStore::ingest_many(const std::vector<HashedBatch>& batches) {
  std::vector<Item> items;
  const Status sorted = sort_out(batches, items);
  if (!sorted.is_ok()) return std::vector<Result<Ingest>>(batches.size(), sorted);
  std::set<std::int64_t> days;
  for (const Item& item : items)
    if (item.admission.counts())
      days.insert(item.admission.days.begin(), item.admission.days.end());
  for (const std::int64_t day : days) {
    const Status status = add_day(day, items);
    if (status.is_ok()) continue;
    for (Item& item : items)
      if (item.waits_for(day)) item.status = status;
  }
  const Status sources = add_sources(items);
  std::vector<Result<Ingest>> results;
  for (const Item& item : items) {
    const Status& status = item.status.is_ok() ? sources : item.status;
    if (status.is_ok()) {
      results.emplace_back(item.outcome);
    } else {
      results.emplace_back(status);
    }
  }
  return results;
}

Result<std::vector<HashedBatch>> ClickhouseStore::quarantined(const std::string& node) {
  const std::string where = node.empty() ? "" : fmt::format(" AND node = {}", sql_text(node));
  PURLIN_ASSIGN(const std::string rows,
                client().select(fmt::format("SELECT hash, skew_ns, batch FROM {{db}}.quarantine "
                                            "FINAL WHERE gone = 0{} ORDER BY version",
                                            where)));
  std::vector<HashedBatch> batches;
  Decoder in(rows);
  while (!in.at_end() && !in.failed()) {
    HashedBatch& hashed = batches.emplace_back();
    hashed.hash = in.text();
    const auto skew = static_cast<std::int64_t>(in.fixed64());
    PURLIN_ASSIGN(hashed.batch, decode(in.text()));
    hashed.batch.skew_ns = skew;
  }
  return batches;
}

Result<std::uint64_t> ClickhouseStore::release(const std::string& node) {
  PURLIN_ASSIGN(std::vector<HashedBatch> kept, quarantined(node));
  for (HashedBatch& hashed : kept) {
    const std::string bytes = encode(hashed.batch).value_or("");
    const std::int64_t skew = hashed.batch.skew_ns;
    move_times(hashed.batch);
    hashed.batch.skew_ns = 0;
    const std::vector<Result<Ingest>> results = ingest_many({hashed});
    if (!results[0].is_ok()) return results[0].status();
    Encoder row;
    row.text(hashed.hash);
    row.text(hashed.batch.node);
    row.text(hashed.batch.boot);
    row.fixed64(static_cast<std::uint64_t>(skew));
    row.text(bytes);
    row.u8(1);
    row.fixed64(next_version());
    PURLIN_TRY(client().insert("quarantine(hash, node, boot, skew_ns, batch, gone, version)",
                               row.bytes()));
  }
  return kept.size();
}

}  // namespace purlin::store
