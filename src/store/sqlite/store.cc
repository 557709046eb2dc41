// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/store.h"

#include "base/files.h"
#include "base/time.h"
#include "store/arrival.h"
#include "store/sqlite/catalog.h"
#include "store/sqlite/fold.h"
#include "store/sqlite/folder.h"
#include "store/sqlite/live_slots.h"
#include "store/sqlite/period_writer.h"
#include "store/sqlite/reader.h"
#include "store/sqlite/schema.h"

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <sqlite3.h>

namespace purlin::store {
namespace {

constexpr std::size_t kMaxOpenWriters = 6;
constexpr const char* kWriterLock = "writer.lock";

class SqliteStore : public Store {
 public:
  SqliteStore(std::string root, StoreOptions options, FileLock lock, Catalog catalog)
      : folder_(root),
        options_(std::move(options)),
        lock_(std::move(lock)),
        catalog_(std::move(catalog)),
        live_(std::make_shared<LiveSlots>()),
        reader_(std::move(root), live_) {}

  std::vector<Result<Ingest>> ingest_many(const std::vector<HashedBatch>& batches) override;
  Status put_guard(const GuardResult& result) override { return catalog_.put_guard(result); }
  Status keep_raw(const std::string& sha256, std::int64_t until_ns,
                  const std::string& why) override {
    return catalog_.keep_raw(sha256, until_ns, why);
  }
  Status forget_raw(const std::string& sha256) override { return catalog_.forget_raw(sha256); }
  Status expire(std::int64_t before_ns) override;
  Status compact() override;
  Result<StoreCheck> check() override { return check_sqlite_store(folder_.root()); }
  Result<std::uint64_t> release(const std::string& node) override;
  Result<std::unique_ptr<Reader>> reader() override {
    return std::unique_ptr<Reader>(std::make_unique<SqliteReader>(folder_.root(), live_));
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
  Result<std::vector<RawInfo>> raws(const Filter& filter) override { return catalog_.raws(filter); }
  Result<std::vector<GuardResult>> guard_history(const std::string& kernel,
                                                 std::size_t limit) override {
    return catalog_.guard_history(kernel, limit);
  }

 private:
  struct Item {
    const HashedBatch* batch = nullptr;
    Admission admission;
    BatchLabels labels;
    Status status;
    Ingest outcome = Ingest::kDuplicate;
    bool waits_for(std::int64_t day) const {
      return admission.counts() && status.is_ok() && admission.days.count(day) > 0;
    }
  };
  Status sort_out(const std::vector<HashedBatch>& batches, std::vector<Item>& items);
  Status add_day(std::int64_t day, std::vector<Item>& items);
  Result<PeriodWriter*> writer(Level level, std::int64_t ns);
  void close(Level level, std::int64_t ns);
  Status fold_into(Level level, std::int64_t finer_ns);
  Status fold_day(std::int64_t day) { return fold_into(Level::kDays, day); }

  Folder folder_;
  const StoreOptions options_;
  const FileLock lock_;
  Catalog catalog_;
  const std::shared_ptr<LiveSlots> live_;
  SqliteReader reader_;
  std::list<std::unique_ptr<PeriodWriter>> writers_;  // the last used first
};

Result<PeriodWriter*> SqliteStore::writer(Level level, std::int64_t ns) {
  const std::string path = folder_.path(level, ns);
  for (auto at = writers_.begin(); at != writers_.end(); ++at) {
    if ((*at)->path() != path) continue;
    writers_.splice(writers_.begin(), writers_, at);
    return writers_.front().get();
  }
  PURLIN_TRY(make_directories_durably(folder_.level_folder(level)));
  PURLIN_ASSIGN(PeriodWriter writer, PeriodWriter::open(path));
  writers_.push_front(std::make_unique<PeriodWriter>(std::move(writer)));
  if (writers_.size() > kMaxOpenWriters) writers_.pop_back();
  return writers_.front().get();
}

void SqliteStore::close(Level level, std::int64_t ns) {
  const std::string path = folder_.path(level, ns);
  writers_.remove_if([&](const auto& writer) { return writer->path() == path; });
  live_->forget(path);
  reader_.close(level, ns);
}

// What the catalog must know is durable before a row counts.
Status SqliteStore::sort_out(const std::vector<HashedBatch>& batches, std::vector<Item>& items) {
  PURLIN_ASSIGN(const std::int64_t horizon, catalog_.horizon_ns());
  std::vector<Catalog::Arrival> arrivals;
  for (const HashedBatch& hashed : batches) {
    Item& item = items.emplace_back();
    item.batch = &hashed;
    item.admission = admit(hashed, options_.max_skew_ns, horizon);
    item.status = item.admission.status;
    if (!item.status.is_ok()) continue;
    if (item.admission.too_old) item.outcome = Ingest::kTooOld;
    if (item.admission.quarantined) {
      PURLIN_ASSIGN(const bool known, catalog_.is_quarantined(hashed.hash));
      item.outcome = known ? Ingest::kDuplicate : Ingest::kQuarantined;
    }
    arrivals.push_back({&hashed, item.admission.quarantined, item.admission.too_old});
  }
  return catalog_.add(arrivals);
}

Status SqliteStore::add_day(std::int64_t day, std::vector<Item>& items) {
  PURLIN_ASSIGN(PeriodWriter* const writer, this->writer(Level::kHours, day));
  PURLIN_TRY(writer->begin());
  writer->watch(live_->known(writer->path()));
  std::vector<Item*> added;
  for (Item& item : items) {
    if (!item.waits_for(day)) continue;
    PURLIN_ASSIGN(const bool is_new, writer->add(*item.batch, item.labels, day));
    if (is_new) added.push_back(&item);
  }
  if (added.empty()) {
    writer->roll_back();
    return Status::ok();
  }
  PURLIN_TRY(writer->commit());
  for (PeriodWriter::Change& change : writer->take_changes())
    live_->add(writer->path(), change.slot, change.revision, std::move(change.added));
  for (Item* item : added) item->outcome = Ingest::kStored;
  return Status::ok();
}

std::vector<Result<Ingest>> SqliteStore::ingest_many(const std::vector<HashedBatch>& batches) {
  std::vector<Item> items;
  const Status sorted = sort_out(batches, items);
  if (!sorted.is_ok()) return std::vector<Result<Ingest>>(batches.size(), sorted);
  std::set<std::int64_t> days;
  for (Item& item : items) {
    if (!item.admission.counts()) continue;
    item.labels = labels_of(item.batch->batch);
    days.insert(item.admission.days.begin(), item.admission.days.end());
  }
  for (const std::int64_t day : days) {
    const Status status = add_day(day, items);
    if (status.is_ok()) continue;
    close(Level::kHours, day);  // and with it the transaction
    for (Item& item : items)
      if (item.waits_for(day)) item.status = status;
  }
  std::vector<Result<Ingest>> results;
  for (const Item& item : items) {
    if (item.status.is_ok()) {
      results.emplace_back(item.outcome);
    } else {
      results.emplace_back(item.status);
    }
  }
  return results;
}

// The row of a day or month, from the finer file that is its source, where that has changed.
Status SqliteStore::fold_into(Level level, std::int64_t slot_ns) {
  const Level finer = level == Level::kMonths ? Level::kDays : Level::kHours;
  PURLIN_ASSIGN(const std::int64_t revision, reader_.revision(finer, slot_ns));
  PURLIN_ASSIGN(const std::optional<std::int64_t> folded, reader_.folded(level, slot_ns));
  if (revision == 0 || (folded && *folded == revision)) return Status::ok();
  PURLIN_ASSIGN(PeriodReader* const source, reader_.period(finer, slot_ns));
  PURLIN_ASSIGN(const FoldedRows rows, fold(*source, scale_of(level)));
  PURLIN_ASSIGN(PeriodWriter* const writer, this->writer(level, slot_ns));
  PURLIN_TRY(writer->begin());
  Status status =
      writer->replace_slot(slot_of(level, slot_ns), rows.rows, rows.coverage, rows.revision);
  if (status.is_ok()) status = writer->commit();
  if (!status.is_ok()) close(level, slot_ns);
  return status;
}

Status SqliteStore::compact() {
  PURLIN_ASSIGN(const std::vector<std::int64_t> days, folder_.periods(Level::kHours));
  const std::int64_t now = system_clock().wall_ns();
  for (const std::int64_t day : days)
    if (day + kDayNs <= now) PURLIN_TRY(fold_day(day));
  PURLIN_ASSIGN(const std::vector<std::int64_t> months, folder_.periods(Level::kDays));
  for (const std::int64_t month : months) PURLIN_TRY(fold_into(Level::kMonths, month));
  return Status::ok();
}

Status SqliteStore::expire(std::int64_t before_ns) {
  const std::int64_t horizon = day_begin(before_ns);
  PURLIN_ASSIGN(const std::vector<std::int64_t> days, folder_.periods(Level::kHours));
  for (const std::int64_t day : days)
    if (day < horizon) PURLIN_TRY(fold_day(day));
  PURLIN_TRY(catalog_.set_horizon(horizon));
  for (const std::int64_t day : days) {
    if (day >= horizon) break;
    close(Level::kHours, day);
    for (const char* ending : {"", "-wal", "-shm"})
      PURLIN_TRY(remove_file(folder_.path(Level::kHours, day) + ending));
  }
  return is_directory(folder_.level_folder(Level::kHours))
             ? sync_folder(folder_.level_folder(Level::kHours))
             : Status::ok();
}

Result<std::uint64_t> SqliteStore::release(const std::string& node) {
  PURLIN_ASSIGN(std::vector<HashedBatch> kept, catalog_.quarantined(node));
  std::uint64_t released = 0;
  for (HashedBatch& hashed : kept) {
    move_times(hashed.batch);
    hashed.batch.skew_ns = 0;
    const std::vector<Result<Ingest>> results = ingest_many({hashed});
    if (!results[0].is_ok()) return results[0].status();
    PURLIN_TRY(catalog_.leave_quarantine(hashed.hash));
    ++released;
  }
  return released;
}

}  // namespace

Status init_sqlite_store(const std::string& root) {
  PURLIN_TRY(make_directories_durably(root));
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(join_path(root, kWriterLock), 0));
  return Catalog::open(Folder(root).catalog(), Database::Mode::kWrite).status();
}

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& root,
                                                 const StoreOptions& options) {
  if (!file_exists(Folder(root).catalog()))
    return error(Code::kNotFound, "{}: no store is there; make one with `purlin store init {}`",
                 root, root);
  Result<FileLock> lock = FileLock::acquire(join_path(root, kWriterLock), 0);
  if (!lock.is_ok())
    return error(Code::kUnavailable, "{}: another process writes to this store ({})", root,
                 lock.status().message());
  PURLIN_ASSIGN(Catalog catalog, Catalog::open(Folder(root).catalog(), Database::Mode::kWrite));
  return std::unique_ptr<Store>(
      std::make_unique<SqliteStore>(root, options, std::move(*lock), std::move(catalog)));
}

Result<std::unique_ptr<Reader>> open_sqlite_reader(const std::string& root) {
  if (!file_exists(Folder(root).catalog()))
    return error(Code::kNotFound, "{}: no store is there; make one with `purlin store init {}`",
                 root, root);
  return std::unique_ptr<Reader>(std::make_unique<SqliteReader>(root));
}

Result<StoreCheck> check_sqlite_store(const std::string& root) {
  if (!file_exists(Folder(root).catalog())) return open_sqlite_reader(root).status();
  StoreCheck result;
  result.engine = "sqlite";
  result.version = ::sqlite3_libversion();
  result.schema = static_cast<int>(period_schema().size());
  SqliteReader reader(root);
  PURLIN_TRY(reader.check(result));
  return result;
}

Result<std::vector<std::string>> migrate_sqlite_store(const std::string& root) {
  const Folder folder(root);
  if (!file_exists(folder.catalog())) return open_sqlite_reader(root).status();
  PURLIN_ASSIGN(const FileLock lock, FileLock::acquire(join_path(root, kWriterLock), 0));
  std::vector<std::string> done;
  const auto migrate = [&](const std::string& path, const SchemaSteps& steps) -> Status {
    PURLIN_ASSIGN(Database database, Database::open(path, Database::Mode::kWrite));
    PURLIN_ASSIGN(const int taken, take_steps(database, steps));
    if (taken > 0) done.push_back(fmt::format("{}: now has schema {}", path, steps.size()));
    return Status::ok();
  };
  PURLIN_TRY(migrate(folder.catalog(), catalog_schema()));
  for (const Level level : {Level::kHours, Level::kDays, Level::kMonths}) {
    PURLIN_ASSIGN(const std::vector<std::int64_t> periods, folder.periods(level));
    for (const std::int64_t period : periods)
      PURLIN_TRY(migrate(folder.path(level, period), period_schema()));
  }
  return done;
}

}  // namespace purlin::store
