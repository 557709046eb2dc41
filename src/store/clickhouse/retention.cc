// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"
#include "store/clickhouse/engine.h"
#include "store/clickhouse/schema.h"

#include <cstdlib>
#include <map>

namespace purlin::store {
namespace {

using profile::wire::Decoder;

}  // namespace

// A new generation of rows, and then the row that names it: until then no question reads it.
Status ClickhouseStore::fold_slot(Level level, std::int64_t slot_ns, std::uint64_t revision,
                                  const std::string& where) {
  const std::uint64_t generation = next_version();
  const std::int64_t hour = slot_ns / kHourNs;
  // Two buckets of a sketch are one; the numbers of coverage stay.
  constexpr const char* kLower =
      "arrayMap(b -> if(kernel = 1 OR b = 0, b, toInt32(intDiv(b - 1, 2) + 1)), bucketsMap.bucket)";
  PURLIN_TRY(dictionary_.write(client(), {{Kind::kUnit, join_fields({"", ""})}}));
  PURLIN_TRY(client().execute(fmt::format(
      "INSERT INTO {{db}}.{}{} SELECT kernel, problem, platform, build, job, toUInt64({}), "
      "toUInt32({}), toUInt64({}), toUInt64(0), sum(launches), sum(recorded), sum(sum_ns), "
      "(sumMap({}, bucketsMap.weight) AS m).1, m.2 FROM {{db}}.{} WHERE kernel > {} AND {} GROUP "
      "BY kernel, problem, platform, build, job",
      level == Level::kMonths ? "months" : "days", kRollupColumns,
      entry_id(Kind::kUnit, join_fields({"", ""})), hour, generation, kLower,
      level == Level::kMonths ? "days" : "hours", kBatchKernel, where)));
  return client().execute(
      fmt::format("INSERT INTO {{db}}.folds(level, hour, generation, revision) VALUES ({}, {}, {}, "
                  "{})",
                  static_cast<int>(level), hour, generation, revision));
}

Status ClickhouseStore::fold_days(std::int64_t until_ns) {
  PURLIN_ASSIGN(const auto days, reader_.days());
  PURLIN_ASSIGN(const auto folds, reader_.folds());
  for (const auto& [day, batches] : days) {
    const auto folded = folds.find({Level::kDays, day});
    if (day >= until_ns || (folded != folds.end() && folded->second.revision == batches)) continue;
    PURLIN_TRY(fold_slot(Level::kDays, day, batches,
                         fmt::format("hour BETWEEN {} AND {}", day / kHourNs, day / kHourNs + 23)));
  }
  return Status::ok();
}

Status ClickhouseStore::compact() {
  PURLIN_TRY(fold_days(day_begin(system_clock().wall_ns())));
  PURLIN_ASSIGN(const auto folds, reader_.folds());
  struct Month {
    std::uint64_t revision = 0;
    std::string days;
  };
  std::map<std::int64_t, Month> months;
  for (const auto& [key, fold] : folds) {
    if (key.first != Level::kDays) continue;
    Month& month = months[month_begin(key.second)];
    month.revision += fold.revision;
    month.days += fmt::format("{}(hour = {} AND generation = {})", month.days.empty() ? "" : " OR ",
                              key.second / kHourNs, fold.generation);
  }
  for (const auto& [begin, month] : months) {
    const auto folded = folds.find({Level::kMonths, begin});
    if (folded != folds.end() && folded->second.revision == month.revision) continue;
    PURLIN_TRY(fold_slot(Level::kMonths, begin, month.revision, "(" + month.days + ")"));
  }
  return Status::ok();
}

// No question reads hours before the horizon: a partition that stays costs space only.
Status ClickhouseStore::expire(std::int64_t before_ns) {
  const std::int64_t horizon = day_begin(before_ns);
  PURLIN_TRY(fold_days(horizon));
  PURLIN_TRY(client().execute(
      fmt::format("INSERT INTO {{db}}.meta(key, value, version) SELECT 'horizon_ns', value, "
                  "toUInt64({}) FROM (SELECT greatest(toInt64({}), toInt64(max(value))) AS value "
                  "FROM {{db}}.meta WHERE key = 'horizon_ns')",
                  next_version(), horizon)));
  const std::string table = local_table(client(), "hours");
  PURLIN_ASSIGN(const std::string rows,
                client().select(fmt::format("SELECT DISTINCT partition FROM system.parts WHERE "
                                            "active AND database = '{{db}}' AND table = '{}'",
                                            table)));
  Decoder in(rows);
  while (!in.at_end() && !in.failed()) {
    const std::int64_t day = std::atoll(std::string(in.text()).c_str());
    if (day * kDayNs < horizon)
      PURLIN_TRY(
          client().execute(fmt::format("ALTER TABLE {{db}}.{} DROP PARTITION {}", table, day)));
  }
  return Status::ok();
}

}  // namespace purlin::store
