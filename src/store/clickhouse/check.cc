// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/engine.h"
#include "store/clickhouse/schema.h"

namespace purlin::store {
namespace {

using profile::wire::Decoder;

}  // namespace

Result<StoreCheck> ClickhouseStore::check() {
  StoreCheck result;
  result.engine = "clickhouse";
  result.version = client().version();
  result.schema = kClickhouseSchema;
  PURLIN_ASSIGN(
      const std::int64_t bytes,
      client().integer("SELECT toInt64(sum(bytes_on_disk)) FROM system.parts WHERE active "
                       "AND database = '{db}'"));
  result.bytes = static_cast<std::uint64_t>(bytes);
  PURLIN_ASSIGN(const std::string sums,
                client().select("SELECT toUInt64(countIf(kernel = 0 AND unit = 1)), "
                                "toUInt64(countIf(kernel > 1)), toInt64(min(hour)), "
                                "toInt64(max(hour)) FROM {db}.hours WHERE hour >= intDiv((SELECT "
                                "toInt64(max(value)) FROM {db}.meta WHERE key = 'horizon_ns'), "
                                "3600000000000)"));
  Decoder in(sums);
  result.batches = in.fixed64();
  result.hour_rows = in.fixed64();
  result.first_hour_ns = static_cast<std::int64_t>(in.fixed64()) * kHourNs;
  result.last_hour_ns = static_cast<std::int64_t>(in.fixed64()) * kHourNs;
  PURLIN_ASSIGN(const std::int64_t day_rows,
                client().integer("SELECT toInt64(count()) FROM {db}.days WHERE kernel > 1"));
  PURLIN_ASSIGN(const std::int64_t month_rows,
                client().integer("SELECT toInt64(count()) FROM {db}.months WHERE kernel > 1"));
  result.day_rows = static_cast<std::uint64_t>(day_rows);
  result.month_rows = static_cast<std::uint64_t>(month_rows);
  PURLIN_ASSIGN(const std::int64_t doubled,
                client().integer("SELECT toInt64(count()) FROM (SELECT problem, platform, hour, "
                                 "sum(launches) AS n FROM {db}.hours WHERE kernel = 0 GROUP BY "
                                 "problem, platform, hour) WHERE n > 1"));
  if (doubled > 0)
    result.findings.push_back({"hours", fmt::format("{} batches are stored twice", doubled), true});
  PURLIN_ASSIGN(const std::int64_t unequal,
                client().integer("SELECT toInt64(count()) FROM {db}.hours WHERE kernel > 1 AND "
                                 "abs(launches - arraySum(bucketsMap.weight)) > 1e-6 * launches"));
  if (unequal > 0)
    result.findings.push_back(
        {"hours", fmt::format("the sketches of {} rows do not fit them", unequal), true});
  PURLIN_ASSIGN(const std::vector<HashedBatch> kept, quarantined(""));
  if (!kept.empty())
    result.findings.push_back(
        {"quarantine",
         fmt::format("{} batches are in quarantine: the clocks of their nodes are wrong",
                     kept.size()),
         false});
  return result;
}

}  // namespace purlin::store
