// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/period_writer.h"

#include "base/hash.h"
#include "store/arrival.h"
#include "store/shed_text.h"
#include "store/sqlite/schema.h"

namespace purlin::store {
namespace {

// What the memory of ids may hold before it starts again.
constexpr std::size_t kMaxRemembered = 2'000'000;

std::int64_t text_hash(Kind kind, std::string_view text) {
  return static_cast<std::int64_t>(hash64(text) ^ static_cast<std::uint64_t>(kind));
}

}  // namespace

std::size_t PeriodWriter::SeriesHash::operator()(const SeriesKey& key) const {
  return hash64(key.data(), sizeof key);
}

Result<PeriodWriter> PeriodWriter::open(const std::string& path) {
  PURLIN_ASSIGN(Database database, Database::open(path, Database::Mode::kWrite));
  PURLIN_TRY(require_schema(database, period_schema()));
  PeriodWriter writer(std::move(database));
  PURLIN_TRY(writer.prepare());
  return writer;
}

Status PeriodWriter::prepare() {
  const auto prepare = [&](Statement& statement, const char* sql) -> Status {
    PURLIN_ASSIGN(statement, database_.prepare(sql));
    return Status::ok();
  };
  PURLIN_TRY(
      prepare(find_text_, "SELECT id FROM dict WHERE hash = ?1 AND kind = ?2 AND text = ?3"));
  PURLIN_TRY(
      prepare(add_text_, "INSERT INTO dict(hash, kind, text) VALUES(?1, ?2, ?3) RETURNING id"));
  PURLIN_TRY(prepare(find_series_,
                     "SELECT id FROM series WHERE kernel = ?1 AND problem = ?2 AND platform = ?3 "
                     "AND build = ?4 AND job = ?5 AND unit = ?6"));
  PURLIN_TRY(prepare(add_series_,
                     "INSERT INTO series(kernel, problem, platform, build, job, unit) "
                     "VALUES(?1, ?2, ?3, ?4, ?5, ?6) RETURNING id"));
  PURLIN_TRY(prepare(find_source_, "SELECT id FROM source WHERE node = ?1 AND boot = ?2"));
  PURLIN_TRY(prepare(add_source_,
                     "INSERT INTO source(node, boot, tool_version, first_begin_ns, last_end_ns, "
                     "received_ns, skew_ns, first_sequence, last_sequence, batches, cpu_ns, "
                     "rss_bytes, shed) VALUES(?1, ?2, '', ?3, ?3, 0, 0, ?4, ?4, 0, 0, 0, '') "
                     "RETURNING id"));
  PURLIN_TRY(prepare(
      update_source_,
      "UPDATE source SET first_begin_ns = min(first_begin_ns, ?2), last_end_ns = max(last_end_ns, "
      "?3), first_sequence = min(first_sequence, ?4), batches = batches + ?5, cpu_ns = cpu_ns + ?6,"
      " tool_version = iif(?4 >= last_sequence, ?7, tool_version),"
      " received_ns = iif(?4 >= last_sequence, ?8, received_ns),"
      " skew_ns = iif(?4 >= last_sequence, ?9, skew_ns),"
      " rss_bytes = iif(?4 >= last_sequence, ?10, rss_bytes),"
      " shed = iif(?4 >= last_sequence, ?11, shed),"
      " last_sequence = max(last_sequence, ?4) WHERE id = ?1"));
  PURLIN_TRY(prepare(count_batch_,
                     "SELECT 1 FROM batch WHERE source = ?1 AND sequence = ?2 AND hash = ?3"));
  PURLIN_TRY(prepare(add_batch_,
                     "INSERT INTO batch(source, sequence, hash, home) VALUES(?1, ?2, ?3, ?4)"));
  PURLIN_TRY(prepare(find_row_,
                     "SELECT launches, recorded, sketch FROM rollup WHERE slot = ?1 AND series = "
                     "?2"));
  PURLIN_TRY(prepare(put_row_,
                     "REPLACE INTO rollup(slot, series, launches, recorded, sum_ns, sketch) "
                     "VALUES(?1, ?2, ?3, ?4, ?5, ?6)"));
  PURLIN_TRY(prepare(raise_,
                     "INSERT INTO meta VALUES(?1, 1) ON CONFLICT DO UPDATE SET value = value + 1 "
                     "RETURNING value"));
  return prepare(put_coverage_,
                 "INSERT INTO coverage VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) "
                 "ON CONFLICT DO UPDATE SET busy_ns = busy_ns + ?5, seen_ns = seen_ns + ?6, "
                 "seen = seen + ?7, lost = lost + ?8, sampled_out = sampled_out + ?9, "
                 "overhead_ns = overhead_ns + ?10, bad_timestamps = bad_timestamps + ?11");
}

Status PeriodWriter::begin() {
  if (texts_.size() + series_.size() > kMaxRemembered) texts_.clear(), series_.clear();
  PURLIN_ASSIGN(Transaction transaction, Transaction::begin(database_));
  transaction_.emplace(std::move(transaction));
  return Status::ok();
}

Result<std::int64_t> PeriodWriter::text_id(Kind kind, const std::string& text) {
  std::string key = text;
  key += static_cast<char>(kind);
  if (const auto known = texts_.find(key); known != texts_.end()) return known->second;
  const std::int64_t hash = text_hash(kind, text);
  for (Statement* statement : {&find_text_, &add_text_}) {
    statement->bind(1, hash)
        .bind(2, static_cast<std::int64_t>(kind))
        .bind(3, std::string_view(text));
    PURLIN_ASSIGN(const bool found, statement->step());
    if (!found) continue;
    const std::int64_t id = statement->integer(0);
    PURLIN_TRY(statement->run());
    texts_.emplace(std::move(key), id);
    return id;
  }
  return error(Code::kFailed, "{}: a text has no id", path());
}

Result<std::int64_t> PeriodWriter::series_id(const SeriesKey& key) {
  if (const auto known = series_.find(key); known != series_.end()) return known->second;
  for (Statement* statement : {&find_series_, &add_series_}) {
    for (std::size_t i = 0; i < key.size(); ++i) statement->bind(static_cast<int>(i) + 1, key[i]);
    PURLIN_ASSIGN(const bool found, statement->step());
    if (!found) continue;
    const std::int64_t id = statement->integer(0);
    PURLIN_TRY(statement->run());
    series_.emplace(key, id);
    return id;
  }
  return error(Code::kFailed, "{}: a series has no id", path());
}

Result<std::int64_t> PeriodWriter::source_id(const Batch& batch) {
  for (Statement* statement : {&find_source_, &add_source_}) {
    statement->bind(1, std::string_view(batch.node)).bind(2, std::string_view(batch.boot));
    if (statement == &add_source_)
      statement->bind(3, batch.begin_ns).bind(4, static_cast<std::int64_t>(batch.sequence));
    PURLIN_ASSIGN(const bool found, statement->step());
    if (!found) continue;
    const std::int64_t id = statement->integer(0);
    PURLIN_TRY(statement->run());
    return id;
  }
  return error(Code::kFailed, "{}: a node has no id", path());
}

Status PeriodWriter::update_source(std::int64_t source, const Batch& batch, bool home) {
  const std::string shed = shed_text(batch);
  update_source_.bind(1, source)
      .bind(2, batch.begin_ns)
      .bind(3, batch.end_ns)
      .bind(4, static_cast<std::int64_t>(batch.sequence))
      .bind(5, std::int64_t{home ? 1 : 0})
      .bind(6, home ? batch.collector_cpu_ns : 0.0)
      .bind(7, std::string_view(batch.tool_version))
      .bind(8, batch.sent_ns + batch.skew_ns)
      .bind(9, batch.skew_ns)
      .bind(10, static_cast<std::int64_t>(batch.collector_rss_bytes))
      .bind(11, std::string_view(shed));
  return update_source_.run();
}

Result<bool> PeriodWriter::add(const HashedBatch& hashed, const BatchLabels& labels,
                               std::int64_t day_ns) {
  const Batch& batch = hashed.batch;
  const std::string hash = short_hash(hashed.hash);
  const auto sequence = static_cast<std::int64_t>(batch.sequence);
  PURLIN_ASSIGN(const std::int64_t source, source_id(batch));
  count_batch_.bind(1, source).bind(2, sequence).bind_blob(3, hash);
  PURLIN_ASSIGN(const bool known, count_batch_.step());
  count_batch_.reset();
  if (known) return false;
  const bool home = day_begin(batch.begin_ns) == day_ns;
  add_batch_.bind(1, source).bind(2, sequence).bind_blob(3, hash).bind(4, std::int64_t{home});
  PURLIN_TRY(add_batch_.run());
  PURLIN_TRY(update_source(source, batch, home));

  std::vector<std::int64_t> ids(labels.entries.size(), 0);
  const auto id = [&](std::uint32_t entry) -> Result<std::int64_t> {
    if (ids[entry] == 0) {
      PURLIN_ASSIGN(ids[entry], text_id(labels.entries[entry].first, labels.entries[entry].second));
    }
    return ids[entry];
  };
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    const BatchRow& row = batch.rows[i];
    if (day_begin(row.hour_ns) != day_ns) continue;
    SeriesKey key;
    for (std::size_t kind = 0; kind < kSeriesKinds; ++kind) {
      PURLIN_ASSIGN(key[kind], id(labels.rows[i].entries[kind]));
    }
    PURLIN_ASSIGN(const std::int64_t series, series_id(key));
    const int slot = slot_of(Level::kHours, row.hour_ns);
    if (watched_.count(slot) > 0) collect(slot, key, row);
    Pending& pending = pending_[{slot, series}];
    pending.launches += row.duration.count();
    pending.recorded += row.recorded;
    pending.sketch.add(row.duration);
  }
  for (std::size_t i = 0; i < batch.coverage.size(); ++i) {
    const BatchCoverage& c = batch.coverage[i];
    if (day_begin(c.hour_ns) != day_ns) continue;
    PURLIN_ASSIGN(const std::int64_t platform, id(labels.coverage[i].platform));
    PURLIN_ASSIGN(const std::int64_t unit, id(labels.coverage[i].unit));
    PURLIN_ASSIGN(const std::int64_t why, id(labels.coverage[i].why));
    PURLIN_TRY(add_coverage(slot_of(Level::kHours, c.hour_ns), platform, unit, why,
                            {c.busy_ns, c.seen_ns, c.launches_seen, c.launches_lost,
                             c.launches_sampled_out, c.overhead_ns, c.bad_timestamps}));
  }
  return true;
}

Status PeriodWriter::add_coverage(int slot, std::int64_t platform, std::int64_t unit,
                                  std::int64_t why, const CoverageAmounts& amounts) {
  put_coverage_.bind(1, std::int64_t{slot}).bind(2, platform).bind(3, unit).bind(4, why);
  for (std::size_t i = 0; i < amounts.size(); ++i)
    put_coverage_.bind(static_cast<int>(i) + 5, amounts[i]);
  return put_coverage_.run();
}

Status PeriodWriter::flush() {
  for (auto& [key, row] : pending_) {
    find_row_.bind(1, std::int64_t{key.first}).bind(2, key.second);
    PURLIN_ASSIGN(const bool found, find_row_.step());
    if (found) {
      row.launches += find_row_.real(0);
      row.recorded += find_row_.real(1);
      const bool intact = row.sketch.add(find_row_.blob(2));
      find_row_.reset();
      if (!intact)
        return error(Code::kCorrupt, "{}: the sketch of series {} in slot {} is damaged", path(),
                     key.second, key.first);
    }
    PURLIN_TRY(put(key.first, key.second, row));
    changed_.insert(key.first);
  }
  pending_.clear();
  return Status::ok();
}

Status PeriodWriter::put(int slot, std::int64_t series, const Pending& row) {
  const Sketch sketch = row.sketch.sketch();
  put_row_.bind(1, std::int64_t{slot})
      .bind(2, series)
      .bind(3, row.launches)
      .bind(4, row.recorded)
      .bind(5, sketch.total_ns())
      .bind_blob(6, sketch_bytes(sketch));
  return put_row_.run();
}

Status PeriodWriter::replace_slot(int slot, const std::vector<LabelledRow>& rows,
                                  const std::vector<LabelledCoverage>& coverage,
                                  std::int64_t revision) {
  PURLIN_TRY(database_.execute(
      fmt::format("DELETE FROM rollup WHERE slot = {0}; DELETE FROM coverage WHERE slot = {0}",
                  slot)
          .c_str()));
  changed_.insert(slot);
  for (const LabelledRow& row : rows) {
    SeriesKey key;
    for (std::size_t kind = 0; kind < kSeriesKinds; ++kind) {
      PURLIN_ASSIGN(key[kind], text_id(static_cast<Kind>(kind), row.texts[kind]));
    }
    PURLIN_ASSIGN(const std::int64_t series, series_id(key));
    pending_[{slot, series}] = {row.launches, row.recorded, row.sketch};
  }
  for (const LabelledCoverage& c : coverage) {
    PURLIN_ASSIGN(const std::int64_t platform, text_id(Kind::kPlatform, c.platform));
    PURLIN_ASSIGN(const std::int64_t unit, text_id(Kind::kUnit, c.unit));
    PURLIN_ASSIGN(const std::int64_t why, text_id(Kind::kWhy, c.why));
    PURLIN_TRY(add_coverage(slot, platform, unit, why, c.amounts));
  }
  return database_.execute(
      fmt::format("REPLACE INTO folded VALUES({}, {})", slot, revision).c_str());
}

Status PeriodWriter::commit() {
  PURLIN_TRY(flush());
  PURLIN_TRY(raise_revision("revision").status());
  std::vector<Change> changes;
  for (const int slot : changed_) {
    PURLIN_ASSIGN(const std::int64_t revision, raise_revision(fmt::format("slot {}", slot)));
    changes.push_back(change_of(slot, revision));
  }
  PURLIN_TRY(transaction_->commit());
  transaction_.reset();
  changed_.clear();
  added_.clear();
  changes_ = std::move(changes);
  return Status::ok();
}

Result<std::int64_t> PeriodWriter::raise_revision(const std::string& key) {
  raise_.bind(1, std::string_view(key));
  PURLIN_ASSIGN(const bool found, raise_.step());
  const std::int64_t revision = found ? raise_.integer(0) : 0;
  PURLIN_TRY(found ? raise_.run() : Status::ok());
  return revision;
}

// Over all GPUs: a question that tells them apart reads the file.
void PeriodWriter::collect(int slot, SeriesKey key, const BatchRow& row) {
  key[static_cast<std::size_t>(Kind::kUnit)] = 0;
  Pending& into = added_[slot][key];
  into.launches += row.duration.count();
  into.recorded += row.recorded;
  into.sketch.add(row.duration);
}

PeriodWriter::Change PeriodWriter::change_of(int slot, std::int64_t revision) {
  Change change{slot, revision, std::nullopt};
  if (watched_.count(slot) == 0) return change;
  change.added.emplace();
  for (const auto& [key, row] : added_[slot]) {
    LiveSlots::Added& one = change.added->emplace_back();
    for (std::size_t i = 0; i < key.size(); ++i) one.ids[i] = static_cast<std::uint32_t>(key[i]);
    one.launches = row.launches;
    one.recorded = row.recorded;
    one.sketch = row.sketch.sketch();
  }
  return change;
}

void PeriodWriter::roll_back() {
  pending_.clear();
  changed_.clear();
  added_.clear();
  texts_.clear();
  series_.clear();
  transaction_.reset();
}

}  // namespace purlin::store
