// SPDX-License-Identifier: Apache-2.0
#include "backlog/leases.h"

#include "base/files.h"
#include "base/time.h"

#include <algorithm>
#include <cmath>
#include <sqlite3.h>

namespace purlin::backlog {
namespace {

constexpr int kLeaseSchema = 1;
constexpr std::int64_t kDay = 86'400'000'000'000;
constexpr const char* kMakeTables = R"(
CREATE TABLE IF NOT EXISTS task(
  id TEXT PRIMARY KEY, device TEXT NOT NULL, document TEXT NOT NULL, stale INTEGER NOT NULL,
  saving_ns REAL NOT NULL, done INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0,
  until_ns INTEGER NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '',
  outcome TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS spent(day INTEGER PRIMARY KEY, gpu_s REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO counter VALUES('token', 0);
)";

// One prepared statement, for one use.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) : database_(database) {
    if (sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr) != SQLITE_OK)
      statement_ = nullptr;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    if (statement_ != nullptr)
      sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                        SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::int64_t value) {
    if (statement_ != nullptr) sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(double value) {
    if (statement_ != nullptr) sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  // True: a row is there.
  Result<bool> step() {
    const int code = statement_ == nullptr ? sqlite3_errcode(database_) : sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
    return error(damaged ? Code::kCorrupt : Code::kIo, "{}", sqlite3_errmsg(database_));
  }
  Status run() {
    PURLIN_ASSIGN(const bool row, step());
    static_cast<void>(row);
    return Status::ok();
  }
  std::string text(int column) const {
    const void* const bytes = sqlite3_column_blob(statement_, column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return bytes == nullptr ? "" : std::string(static_cast<const char*>(bytes), size);
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

Result<RankedTask> task_of(const std::string& document) {
  PURLIN_ASSIGN(const Json json, Json::parse(document));
  return ranked_from_json(json);
}

Status lost(const std::string& id) {
  return error(Code::kCancelled,
               "the lease of task '{}' is lost: it ended and another worker took the task, or the "
               "task is done; this result does not count",
               id);
}

}  // namespace

class Leases::Impl {
 public:
  explicit Impl(std::string path) : path_(std::move(path)) {}
  ~Impl() { sqlite3_close(database_); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status open() {
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    if (sqlite3_open_v2(path_.c_str(), &database_, flags, nullptr) != SQLITE_OK)
      return error(Code::kIo, "'{}': {}", path_, sqlite3_errmsg(database_));
    sqlite3_busy_timeout(database_, 30'000);
    for (const char* const pragma : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"})
      PURLIN_TRY(named(Statement(database_, pragma).run()));
    return change([&]() -> Status {
      Statement version(database_, "PRAGMA user_version");
      PURLIN_ASSIGN(const bool row, version.step());
      const std::int64_t found = row ? version.integer(0) : 0;
      if (found > kLeaseSchema)
        return error(Code::kCorrupt, "is of a newer Purlin (schema {}); use that one", found);
      if (found == kLeaseSchema) return Status::ok();
      return execute(fmt::format("{}PRAGMA user_version = {};", kMakeTables, kLeaseSchema));
    });
  }

  // `body` in one transaction that is the only one to write.
  template <class Body>
  Status change(Body body) {
    PURLIN_TRY(named(execute("BEGIN IMMEDIATE")));
    Status status = body();
    if (status.is_ok()) status = execute("COMMIT");
    if (!status.is_ok()) static_cast<void>(execute("ROLLBACK"));
    return named(status);
  }
  Statement prepare(const char* sql) { return {database_, sql}; }
  int changes() const { return sqlite3_changes(database_); }

  // The file's name in front, except for a lost lease, which is not the file's fault.
  Status named(const Status& status) const {
    if (status.is_ok() || status.code() == Code::kCancelled) return status;
    return status.with_context("'" + path_ + "'");
  }

  // With the token that the task has now, while it is not done: changes one row.
  Status held(Statement& statement, const std::string& id) {
    PURLIN_TRY(statement.run());
    return changes() == 1 ? Status::ok() : lost(id);
  }

  Status spend(double gpu_s, std::int64_t now_ns) {
    if (!(gpu_s > 0) || !std::isfinite(gpu_s)) return Status::ok();
    return prepare(
               "INSERT INTO spent VALUES(?, ?) ON CONFLICT(day) DO UPDATE SET gpu_s = gpu_s + "
               "excluded.gpu_s")
        .bind(now_ns / kDay)
        .bind(gpu_s)
        .run();
  }

 private:
  Status execute(const std::string& sql) {
    char* message = nullptr;
    const int code = sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, &message);
    const std::string text = message == nullptr ? "" : message;
    sqlite3_free(message);
    if (code == SQLITE_OK) return Status::ok();
    const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
    return error(damaged ? Code::kCorrupt : Code::kIo, "{}", text);
  }

  const std::string path_;
  sqlite3* database_ = nullptr;
};

Leases::Leases(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Leases::Leases(Leases&&) noexcept = default;
Leases& Leases::operator=(Leases&&) noexcept = default;
Leases::~Leases() = default;

std::string_view to_text(TaskState state) {
  switch (state) {
    case TaskState::kOpen:
      return "open";
    case TaskState::kLeased:
      return "leased";
    case TaskState::kDone:
      return "done";
    case TaskState::kFailed:
      break;
  }
  return "failed";
}

Result<Leases> Leases::open(const std::string& path) {
  PURLIN_TRY(make_directories_durably(parent_path(absolute_path(path))));
  auto impl = std::make_unique<Impl>(path);
  PURLIN_TRY(impl->open());
  return Leases(std::move(impl));
}

Status Leases::put(const std::vector<Put>& tasks, std::int64_t now_ns) {
  return impl_->change([&]() -> Status {
    for (const Put& put : tasks) {
      RankedTask ranked = put.ranked;
      const bool dated = !ranked.task.queued_at.empty();
      if (!dated) ranked.task.first_queued_at = ranked.task.queued_at = format_rfc3339(now_ns);
      // A source that lists all its tasks each time says nothing new about one that failed.
      PURLIN_TRY(
          impl_
              ->prepare(
                  "INSERT INTO task(id, device, document, stale, saving_ns) VALUES(?, ?, ?, ?, ?) "
                  "ON CONFLICT(id) DO UPDATE SET failures = CASE WHEN ? AND "
                  "json_extract(excluded.document, '$.queued_at') > json_extract(task.document, "
                  "'$.queued_at') THEN 0 ELSE failures END, document = excluded.document, stale = "
                  "excluded.stale, saving_ns = excluded.saving_ns")
              .bind(ranked.task.id())
              .bind(ranked.task.key.device)
              .bind(to_json(ranked).dump())
              .bind(static_cast<std::int64_t>(put.stale))
              .bind(ranked.saving_ns())
              .bind(static_cast<std::int64_t>(dated))
              .run());
    }
    return Status::ok();
  });
}

Result<std::optional<Lease>> Leases::take(const std::string& worker,
                                          const std::vector<std::string>& devices,
                                          std::int64_t duration_ns, std::int64_t now_ns) {
  std::optional<Lease> taken;
  const Status done = impl_->change([&]() -> Status {
    Statement free = impl_->prepare(
        "SELECT id, document, attempts, device FROM task WHERE done = 0 AND failures < ? AND "
        "until_ns <= ? ORDER BY stale DESC, saving_ns DESC, id");
    free.bind(std::int64_t{kMaxAttempts}).bind(now_ns);
    for (;;) {
      PURLIN_ASSIGN(const bool row, free.step());
      if (!row) return Status::ok();
      if (devices.empty() ||
          std::find(devices.begin(), devices.end(), free.text(3)) != devices.end())
        break;
    }
    PURLIN_TRY(impl_->prepare("UPDATE counter SET value = value + 1 WHERE name = 'token'").run());
    Statement token = impl_->prepare("SELECT value FROM counter WHERE name = 'token'");
    PURLIN_TRY(token.run());
    Lease lease;
    PURLIN_ASSIGN(lease.ranked, task_of(free.text(1)));
    lease.token = token.integer(0);
    lease.until_ns = now_ns + duration_ns;
    lease.attempt = static_cast<int>(free.integer(2)) + 1;
    PURLIN_TRY(impl_
                   ->prepare("UPDATE task SET token = ?, until_ns = ?, worker = ?, attempts = "
                             "attempts + 1 WHERE id = ?")
                   .bind(lease.token)
                   .bind(lease.until_ns)
                   .bind(worker)
                   .bind(free.text(0))
                   .run());
    taken = std::move(lease);
    return Status::ok();
  });
  if (!done.is_ok()) return done;
  return taken;
}

Result<std::int64_t> Leases::heartbeat(const std::string& id, std::int64_t token,
                                       std::int64_t duration_ns, std::int64_t now_ns) {
  const std::int64_t until_ns = now_ns + duration_ns;
  const Status renewed = impl_->change([&]() -> Status {
    Statement renew = impl_->prepare(
        "UPDATE task SET until_ns = ? WHERE id = ? AND token = ? AND done = 0 AND "
        "until_ns > 0");
    renew.bind(until_ns).bind(id).bind(token);
    return impl_->held(renew, id);
  });
  if (!renewed.is_ok()) return renewed;
  return until_ns;
}

Status Leases::finish(const std::string& id, std::int64_t token, const std::string& outcome,
                      double gpu_s, std::int64_t now_ns) {
  return impl_->change([&]() -> Status {
    Statement end = impl_->prepare(
        "UPDATE task SET done = 1, until_ns = 0, outcome = ? WHERE id = ? AND "
        "token = ? AND done = 0 AND until_ns > 0");
    end.bind(outcome).bind(id).bind(token);
    PURLIN_TRY(impl_->held(end, id));
    return impl_->spend(gpu_s, now_ns);
  });
}

Status Leases::give_back(const std::string& id, std::int64_t token, const std::string& why,
                         bool failed, double gpu_s, std::int64_t now_ns) {
  return impl_->change([&]() -> Status {
    Statement end = impl_->prepare(
        "UPDATE task SET until_ns = 0, outcome = ?, failures = failures + ? WHERE id = ? AND "
        "token = ? AND done = 0 AND until_ns > 0");
    end.bind(why).bind(static_cast<std::int64_t>(failed)).bind(id).bind(token);
    PURLIN_TRY(impl_->held(end, id));
    return impl_->spend(gpu_s, now_ns);
  });
}

Result<std::vector<SharedTask>> Leases::list(std::int64_t now_ns) {
  Statement rows = impl_->prepare(
      "SELECT document, stale, done, failures, attempts, until_ns, worker, outcome FROM task "
      "ORDER BY stale DESC, saving_ns DESC, id");
  std::vector<SharedTask> tasks;
  for (;;) {
    const Result<bool> row = rows.step();
    if (!row.is_ok()) return impl_->named(row.status());
    if (!*row) return tasks;
    SharedTask task;
    PURLIN_ASSIGN(task.ranked, task_of(rows.text(0)));
    task.stale = rows.integer(1) != 0;
    task.attempts = static_cast<int>(rows.integer(4));
    task.until_ns = rows.integer(5);
    task.worker = rows.text(6), task.outcome = rows.text(7);
    task.state = rows.integer(2) != 0              ? TaskState::kDone
                 : rows.integer(3) >= kMaxAttempts ? TaskState::kFailed
                 : task.until_ns > now_ns          ? TaskState::kLeased
                                                   : TaskState::kOpen;
    tasks.push_back(std::move(task));
  }
}

Result<double> Leases::spent_gpu_s(std::int64_t now_ns) {
  Statement spent = impl_->prepare("SELECT gpu_s FROM spent WHERE day = ?");
  const Result<bool> row = spent.bind(now_ns / kDay).step();
  if (!row.is_ok()) return impl_->named(row.status());
  return *row ? spent.real(0) : 0.0;
}

Result<double> Leases::spent_gpu_s_in_all() {
  Statement spent = impl_->prepare("SELECT total(gpu_s) FROM spent");
  const Result<bool> row = spent.step();
  if (!row.is_ok()) return impl_->named(row.status());
  return *row ? spent.real(0) : 0.0;
}

}  // namespace purlin::backlog
