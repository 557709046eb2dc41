// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/store.h"

#include "base/hash.h"
#include "base/time.h"
#include "store/arrival.h"
#include "store/clickhouse/client.h"
#include "store/clickhouse/dictionary.h"
#include "store/clickhouse/reader.h"
#include "store/clickhouse/schema.h"
#include "store/shed_text.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <unordered_set>

namespace purlin::store {
namespace {

using profile::wire::Decoder;
using profile::wire::Encoder;

// An insert of fewer rows than ClickHouse's block (1,048,576) is one part: all of it or nothing.
constexpr std::size_t kMaxRowsOfInsert = 500'000;
constexpr const char* kRollupColumns =
    "(kernel, problem, platform, build, job, unit, hour, generation, node, launches, recorded, "
    "sum_ns, bucketsMap.bucket, bucketsMap.weight)";
constexpr const char* kRawInsert =
    "raw(sha256, bytes, begin_ns, end_ns, kind, kernel, node, build, job, keep_until_ns, kept_for, "
    "gone, version)";

struct BatchName {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const BatchName&) const = default;
};

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

// Rows of the table hours, of some batches in one day.
class RollupRows {
 public:
  void add(const HashedBatch& hashed, const BatchLabels& labels, std::int64_t day) {
    const Batch& batch = hashed.batch;
    node_ = hash64(batch.node);
    std::vector<std::uint64_t> ids;
    for (const auto& [kind, text] : labels.entries) ids.push_back(entry_id(kind, text));
    const BatchName name = batch_name(hashed);
    const bool home = day_begin(batch.begin_ns) == day;
    begin({kBatchKernel, name.high, name.low, source_id(batch), batch.sequence, home ? 1U : 0U},
          day, 1, 0, home ? batch.collector_cpu_ns : 0);
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
  std::size_t count() const { return count_; }
  const std::string& bytes() const { return rows_.bytes(); }
  void clear() { rows_.clear(), count_ = 0; }

 private:
  void begin(const std::array<std::uint64_t, kSeriesKinds>& key, std::int64_t hour_ns,
             double launches, double recorded, double sum_ns) {
    ++count_;
    for (const std::uint64_t id : key) rows_.fixed64(id);
    rows_.fixed32(static_cast<std::uint32_t>(hour_ns / kHourNs));
    rows_.fixed64(0);
    rows_.fixed64(node_);
    for (const double value : {launches, recorded, sum_ns}) rows_.real(value);
  }
  void add_row(const BatchRow& row, const std::array<std::uint64_t, kSeriesKinds>& key) {
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
  void add_coverage(const BatchCoverage& c, const std::array<std::uint64_t, kSeriesKinds>& key) {
    const double amounts[] = {
        c.busy_ns,     c.seen_ns,       c.launches_seen, c.launches_lost, c.launches_sampled_out,
        c.overhead_ns, c.bad_timestamps};
    begin(key, c.hour_ns, 1, 0, 0);
    rows_.varint(std::size(amounts));
    for (std::uint32_t i = 1; i <= std::size(amounts); ++i) rows_.fixed32(i);
    rows_.varint(std::size(amounts));
    for (const double amount : amounts) rows_.real(amount);
  }

  Encoder rows_;
  std::size_t count_ = 0;
  std::uint64_t node_ = 0;
};

class ClickhouseStore : public Store {
 public:
  ClickhouseStore(Client client, std::string target, StoreOptions options)
      : reader_(std::move(client)), target_(std::move(target)), options_(std::move(options)) {}

  std::vector<Result<Ingest>> ingest_many(const std::vector<HashedBatch>& batches) override;
  Status put_guard(const GuardResult& result) override;
  Status keep_raw(const std::string& sha256, std::int64_t until_ns,
                  const std::string& why) override;
  Status forget_raw(const std::string& sha256) override;
  Status expire(std::int64_t before_ns) override;
  Status compact() override;
  Result<StoreCheck> check() override;
  Result<std::uint64_t> release(const std::string& node) override;
  Result<std::unique_ptr<Reader>> reader() override {
    return open_clickhouse_reader(target_, options_);
  }
  Result<std::vector<Cell>> cells(const Filter& filter, const std::vector<Dimension>& by,
                                  Step step) override {
    return reader_.cells(filter, by, step);
  }
  Result<TopKernels> top(const Filter& filter, std::size_t limit) override {
    return reader_.top(filter, limit);
  }
  Result<std::vector<CoverageCell>> coverage(const Filter& filter, Step step) override {
    return reader_.coverage(filter, step);
  }
  Result<std::vector<NodeState>> nodes() override { return reader_.nodes(); }
  Result<std::vector<std::string>> values(Dimension dimension, const Filter& filter) override {
    return reader_.values(dimension, filter);
  }
  Result<std::vector<RawInfo>> raws(const Filter& filter) override { return reader_.raws(filter); }
  Result<std::vector<GuardResult>> guard_history(const std::string& kernel,
                                                 std::size_t limit) override {
    return reader_.guard_history(kernel, limit);
  }

 private:
  struct Item {
    const HashedBatch* batch = nullptr;
    Admission admission;
    BatchName name;
    BatchLabels labels;
    Status status;
    Ingest outcome = Ingest::kDuplicate;
    bool waits_for(std::int64_t day) const {
      return admission.counts() && status.is_ok() && admission.days.count(day) > 0;
    }
  };
  Client& client() { return reader_.client(); }
  std::uint64_t next_version();
  Result<std::vector<HashedBatch>> quarantined(const std::string& node);
  Status sort_out(const std::vector<HashedBatch>& batches, std::vector<Item>& items);
  Status keep_apart(const std::vector<const HashedBatch*>& wrong_clocks,
                    const std::vector<const HashedBatch*>& too_old);
  Status add_raws(const std::vector<HashedBatch>& batches);
  Status put_raw(const RawInfo& info, bool gone);
  Result<std::set<BatchName>> known(const std::vector<Item>& items, std::int64_t day);
  Status add_day(std::int64_t day, std::vector<Item>& items);
  Status add_sources(const std::vector<Item>& items);
  Status fold_slot(Level level, std::int64_t slot_ns, std::uint64_t revision,
                   const std::string& where);
  Status fold_days(std::int64_t until_ns);

  ClickhouseReader reader_;
  Dictionary dictionary_;
  const std::string target_;
  const StoreOptions options_;
  std::uint64_t last_version_ = 0;
};

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

Status ClickhouseStore::add_raws(const std::vector<HashedBatch>& batches) {
  std::string list;
  for (const HashedBatch& hashed : batches)
    for (const RawPointer& raw : hashed.batch.raws)
      list += (list.empty() ? "" : ",") + sql_text(raw.sha256);
  if (list.empty()) return Status::ok();
  PURLIN_ASSIGN(const std::string rows,
                client().select(fmt::format(
                    "SELECT DISTINCT sha256 FROM {{db}}.raw WHERE sha256 IN ({})", list)));
  std::unordered_set<std::string> known;
  Decoder in(rows);
  while (!in.at_end() && !in.failed()) known.emplace(in.text());
  for (const HashedBatch& hashed : batches) {
    for (const RawPointer& raw : hashed.batch.raws) {
      if (!known.insert(raw.sha256).second) continue;
      const BatchRun& run = hashed.batch.runs[raw.run];
      PURLIN_TRY(put_raw({raw, hashed.batch.node, run.build, job_of(run.labels), 0, ""}, false));
    }
  }
  return Status::ok();
}

Status ClickhouseStore::put_raw(const RawInfo& info, bool gone) {
  Encoder row;
  row.text(info.pointer.sha256);
  row.fixed64(info.pointer.bytes);
  row.fixed64(static_cast<std::uint64_t>(info.pointer.begin_ns));
  row.fixed64(static_cast<std::uint64_t>(info.pointer.end_ns));
  for (const std::string* text :
       {&info.pointer.kind, &info.pointer.kernel, &info.node, &info.build, &info.job})
    row.text(*text);
  row.fixed64(static_cast<std::uint64_t>(info.keep_until_ns));
  row.text(info.kept_for);
  row.u8(gone ? 1 : 0);
  row.fixed64(next_version());
  return client().insert(kRawInsert, row.bytes());
}

Status ClickhouseStore::keep_raw(const std::string& sha256, std::int64_t until_ns,
                                 const std::string& why) {
  PURLIN_ASSIGN(const std::vector<RawInfo> all, reader_.raws({}));
  for (RawInfo info : all) {
    if (info.pointer.sha256 != sha256) continue;
    info.keep_until_ns = std::max(info.keep_until_ns, until_ns);
    info.kept_for = why;
    return put_raw(info, false);
  }
  return error(Code::kNotFound, "no raw profile has the address {}", sha256);
}

Status ClickhouseStore::forget_raw(const std::string& sha256) {
  PURLIN_ASSIGN(const std::vector<RawInfo> all, reader_.raws({}));
  for (const RawInfo& info : all)
    if (info.pointer.sha256 == sha256) return put_raw(info, true);
  return Status::ok();
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
    rows.text(shed_text(batch.shed));
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

Status ClickhouseStore::put_guard(const GuardResult& result) {
  Encoder row;
  row.text(result.id);
  row.fixed64(static_cast<std::uint64_t>(result.time_ns));
  for (const std::string* text : {&result.suite, &result.verdict, &result.build, &result.model})
    row.text(*text);
  row.varint(result.kernels.size());
  for (const std::string& kernel : result.kernels) row.text(kernel);
  row.text(result.document);
  return client().insert("guard(id, time_ns, suite, verdict, build, model, kernels, document)",
                         row.bytes());
}

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

Result<Client> connect_to(const std::string& target, const StoreOptions& options) {
  PURLIN_ASSIGN(ClickhouseTarget parsed, parse_clickhouse_target(target, options));
  return Client::connect(std::move(parsed));
}

}  // namespace

Result<std::unique_ptr<Store>> open_clickhouse_store(const std::string& target,
                                                     const StoreOptions& options) {
  PURLIN_ASSIGN(Client client, connect_to(target, options));
  PURLIN_TRY(require_clickhouse_schema(client));
  return std::unique_ptr<Store>(
      std::make_unique<ClickhouseStore>(std::move(client), target, options));
}

Result<std::unique_ptr<Reader>> open_clickhouse_reader(const std::string& target,
                                                       const StoreOptions& options) {
  PURLIN_ASSIGN(Client client, connect_to(target, options));
  PURLIN_TRY(require_clickhouse_schema(client));
  return std::unique_ptr<Reader>(std::make_unique<ClickhouseReader>(std::move(client)));
}

Status init_clickhouse_store(const std::string& target, const StoreOptions& options) {
  PURLIN_ASSIGN(Client client, connect_to(target, options));
  return make_clickhouse_tables(client);
}

}  // namespace purlin::store
