// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/period_reader.h"

#include "base/files.h"
#include "store/shed_text.h"
#include "store/sketch_bytes.h"
#include "store/sqlite/schema.h"

#include <cmath>

namespace purlin::store {
namespace {

constexpr std::int64_t kMaxIds = 1 << 28;
// Of the slots of one file: 100,000 rows take 10 to 20 MB. LiveSlots have what many ask for.
constexpr std::size_t kMaxCachedBytes = std::size_t{32} << 20;

}  // namespace

Result<PeriodReader> PeriodReader::open(const std::string& path, Level level,
                                        std::int64_t period_ns) {
  PURLIN_ASSIGN(Database database, Database::open(path, Database::Mode::kRead));
  PeriodReader reader(std::move(database), level, period_ns);
  PURLIN_ASSIGN(const int version, schema_version(reader.database_));
  // A writer that was killed has made it, and nothing in it.
  if (version == 0) return error(Code::kNotFound, "{}: it is empty", path);
  PURLIN_TRY(check_schema_version(reader.database_, period_schema()));
  const auto prepare = [&](Statement& statement, const char* sql) -> Status {
    PURLIN_ASSIGN(statement, reader.database_.prepare(sql));
    return Status::ok();
  };
  PURLIN_TRY(prepare(reader.slot_rows_,
                     "SELECT slot, series, launches, recorded, sum_ns, sketch FROM rollup WHERE "
                     "slot = ?1"));
  PURLIN_TRY(prepare(reader.one_row_,
                     "SELECT slot, series, launches, recorded, sum_ns, sketch FROM rollup WHERE "
                     "slot = ?1 AND series = ?2"));
  PURLIN_TRY(prepare(reader.slot_revision_, "SELECT value FROM meta WHERE key = 'slot ' || ?1"));
  return reader;
}

Status PeriodReader::begin() {
  PURLIN_TRY(database_.execute("BEGIN"));
  in_snapshot_ = true;
  return refresh();
}

void PeriodReader::end() {
  slot_rows_.reset();
  one_row_.reset();
  if (in_snapshot_) (void)database_.execute("COMMIT");
  in_snapshot_ = false;
}

Status PeriodReader::renew() {
  end();
  return begin();
}

Status PeriodReader::refresh() {
  PURLIN_ASSIGN(Statement texts,
                database_.prepare("SELECT id, kind, text FROM dict WHERE id >= ?1"));
  texts.bind(1, static_cast<std::int64_t>(entries_.size()));
  while (true) {
    PURLIN_ASSIGN(const bool found, texts.step());
    if (!found) break;
    const std::int64_t id = texts.integer(0);
    if (id > kMaxIds) return error(Code::kCorrupt, "{}: entry {} is impossible", path(), id);
    if (static_cast<std::size_t>(id) >= entries_.size())
      entries_.resize(static_cast<std::size_t>(id) + 1);
    entries_[static_cast<std::size_t>(id)] = {static_cast<Kind>(texts.integer(1)),
                                              split_fields(texts.text(2)), true};
  }
  PURLIN_ASSIGN(Statement rows, database_.prepare("SELECT id, kernel, problem, platform, build, "
                                                  "job, unit FROM series WHERE id >= ?1"));
  rows.bind(1, static_cast<std::int64_t>(series_.size()));
  while (true) {
    PURLIN_ASSIGN(const bool found, rows.step());
    if (!found) return Status::ok();
    const std::int64_t id = rows.integer(0);
    if (id > kMaxIds) return error(Code::kCorrupt, "{}: series {} is impossible", path(), id);
    if (static_cast<std::size_t>(id) >= series_.size())
      series_.resize(static_cast<std::size_t>(id) + 1);
    SeriesRow& row = series_[static_cast<std::size_t>(id)];
    for (std::size_t kind = 0; kind < kSeriesKinds; ++kind) {
      const std::int64_t entry = rows.integer(static_cast<int>(kind) + 1);
      if (entry < 1 || static_cast<std::size_t>(entry) >= entries_.size() ||
          !entries_[static_cast<std::size_t>(entry)].present)
        return error(Code::kCorrupt, "{}: series {} names entry {}, which is not there", path(), id,
                     entry);
      row[kind] = static_cast<std::uint32_t>(entry);
    }
  }
}

Result<std::int64_t> PeriodReader::slot_revision(int slot) {
  slot_revision_.bind(1, std::int64_t{slot});
  PURLIN_ASSIGN(const bool found, slot_revision_.step());
  const std::int64_t revision = found ? slot_revision_.integer(0) : 0;
  slot_revision_.reset();
  return revision;
}

Result<const PeriodReader::Slot*> PeriodReader::remembered(int slot) {
  const auto at = slots_.find(slot);
  if (at == slots_.end()) return nullptr;
  PURLIN_ASSIGN(const std::int64_t revision, slot_revision(slot));
  if (at->second.revision == revision) return &at->second;
  cached_bytes_ -= at->second.bytes();
  slots_.erase(at);
  return nullptr;
}

Result<const PeriodReader::Slot*> PeriodReader::remember(int slot) {
  Slot read;
  PURLIN_ASSIGN(read.revision, slot_revision(slot));
  slot_rows_.bind(1, std::int64_t{slot});
  Row row;
  while (true) {
    PURLIN_ASSIGN(const bool found, next_row(slot_rows_, row));
    if (!found) break;
    read.sketches += row.sketch;
    read.sketch_ends.push_back(read.sketches.size());
    row.sketch = {};
    read.rows.push_back(row);
    if (cached_bytes_ + read.bytes() <= kMaxCachedBytes) continue;
    slot_rows_.reset();
    return nullptr;
  }
  cached_bytes_ += read.bytes();
  return &(slots_[slot] = std::move(read));
}

void PeriodReader::forget() {
  slots_.clear();
  cached_bytes_ = 0;
}

Result<std::int64_t> PeriodReader::revision() {
  return database_.integer("SELECT value FROM meta WHERE key = 'revision'");
}

Result<std::vector<std::pair<int, std::int64_t>>> PeriodReader::folded() {
  PURLIN_ASSIGN(Statement rows, database_.prepare("SELECT slot, revision FROM folded"));
  std::vector<std::pair<int, std::int64_t>> out;
  while (true) {
    PURLIN_ASSIGN(const bool found, rows.step());
    if (!found) return out;
    out.emplace_back(static_cast<int>(rows.integer(0)), rows.integer(1));
  }
}

PeriodReader::MatchingEntries PeriodReader::matching_entries(const Filter& filter) const {
  MatchingEntries matching;
  for (std::size_t kind = 0; kind < kSeriesKinds; ++kind) {
    const KindFilter asked(filter, static_cast<Kind>(kind));
    if (asked.any()) continue;
    std::vector<char>& good = matching[kind];
    good.assign(entries_.size(), 0);
    for (std::size_t id = 0; id < entries_.size(); ++id)
      good[id] = entries_[id].kind == static_cast<Kind>(kind) && asked.matches(entries_[id].fields);
  }
  return matching;
}

std::vector<char> PeriodReader::matching(const Filter& filter) const {
  std::vector<char> matches(series_.size(), 1);
  matches[0] = 0;
  const MatchingEntries good = matching_entries(filter);
  for (std::size_t kind = 0; kind < kSeriesKinds; ++kind) {
    if (good[kind].empty()) continue;
    for (std::size_t id = 1; id < series_.size(); ++id)
      matches[id] &= good[kind][series_[id][kind]];
  }
  return matches;
}

Result<bool> PeriodReader::next_row(Statement& statement, Row& row) {
  PURLIN_ASSIGN(const bool found, statement.step());
  if (!found) return false;
  row.slot = static_cast<int>(statement.integer(0));
  const std::int64_t series = statement.integer(1);
  if (series < 1 || static_cast<std::size_t>(series) >= series_.size())
    return error(Code::kCorrupt, "{}: a row names series {}, which is not there", path(), series);
  row.series = static_cast<std::uint32_t>(series);
  row.launches = statement.real(2);
  row.recorded = statement.real(3);
  row.sum_ns = statement.real(4);
  row.sketch = statement.blob(5);
  return true;
}

Result<std::vector<NodeState>> PeriodReader::sources() {
  PURLIN_ASSIGN(Statement rows,
                database_.prepare("SELECT node, boot, tool_version, first_begin_ns, last_end_ns, "
                                  "received_ns, skew_ns, first_sequence, last_sequence, batches, "
                                  "cpu_ns, rss_bytes, shed FROM source"));
  std::vector<NodeState> states;
  while (true) {
    PURLIN_ASSIGN(const bool found, rows.step());
    if (!found) return states;
    NodeState& state = states.emplace_back();
    state.node = rows.text(0), state.boot = rows.text(1), state.tool_version = rows.text(2);
    state.first_begin_ns = rows.integer(3), state.last_end_ns = rows.integer(4);
    state.last_received_ns = rows.integer(5), state.skew_ns = rows.integer(6);
    state.first_sequence = static_cast<std::uint64_t>(rows.integer(7));
    state.last_sequence = static_cast<std::uint64_t>(rows.integer(8));
    state.batches = static_cast<std::uint64_t>(rows.integer(9));
    state.collector_cpu_ns = rows.real(10);
    state.collector_rss_bytes = static_cast<std::uint64_t>(rows.integer(11));
    ShedAndSpool known = parse_shed(rows.text(12));
    state.shed = std::move(known.shed), state.spool = known.spool;
  }
}

Status PeriodReader::check(StoreCheck& result) {
  PURLIN_ASSIGN(Statement pages, database_.prepare("PRAGMA integrity_check(8)"));
  while (true) {
    PURLIN_ASSIGN(const bool found, pages.step());
    if (!found) break;
    if (pages.text(0) != "ok")
      result.findings.push_back({path(), std::string(pages.text(0)), true});
  }
  PURLIN_TRY(begin());
  forget();
  const Status status = check_rows(result);
  end();
  return status;
}

// Each sketch is read, and counts what its row says.
Status PeriodReader::check_rows(StoreCheck& result) {
  std::uint64_t& count = level_ == Level::kHours  ? result.hour_rows
                         : level_ == Level::kDays ? result.day_rows
                                                  : result.month_rows;
  const std::vector<char> all = matching({});
  std::uint64_t unequal = 0;
  PURLIN_TRY(scan(0, 366, all, [&](const Row& row) {
    ++count;
    BucketSum sum;
    const bool intact = sum.add(row.sketch);
    const Sketch sketch = sum.sketch();
    const bool equal = std::fabs(sketch.count() - row.launches) <= 1e-9 * row.launches &&
                       sketch.total_ns() == row.sum_ns;
    if ((!intact || !equal) && ++unequal == 1)
      result.findings.push_back(
          {path(),
           fmt::format("the sketch of series {} in slot {} does not fit its row", row.series,
                       row.slot),
           true});
    if (level_ == Level::kHours) {
      const std::int64_t hour = slot_begin(level_, period_ns_, row.slot);
      if (result.first_hour_ns == 0 || hour < result.first_hour_ns) result.first_hour_ns = hour;
      result.last_hour_ns = std::max(result.last_hour_ns, hour);
    }
    return Status::ok();
  }));
  if (unequal > 1)
    result.findings.push_back({path(), fmt::format("{} more such rows", unequal - 1), true});
  PURLIN_ASSIGN(const std::int64_t batches,
                database_.integer("SELECT count(*) FROM batch WHERE home = 1"));
  result.batches += static_cast<std::uint64_t>(batches);
  return Status::ok();
}

}  // namespace purlin::store
