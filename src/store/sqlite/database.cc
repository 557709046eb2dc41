// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/database.h"

#include "base/files.h"

#include <sqlite3.h>

namespace purlin::store {
namespace {

constexpr int kBusyTimeoutMs = 10'000;

Status sqlite_failure(const std::string& file, sqlite3* db, int code) {
  const int primary = code & 0xff;
  const char* text = db != nullptr ? ::sqlite3_errmsg(db) : ::sqlite3_errstr(code);
  switch (primary) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return error(
          Code::kCorrupt,
          "{}: the file is damaged ({}); run `purlin store check`, restore it from a backup, "
          "or move it away",
          file, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return error(Code::kUnavailable, "{}: another process keeps it locked", file);
    case SQLITE_FULL:
      return error(Code::kIo, "{}: the disk is full", file);
    default:
      return error(Code::kIo, "{}: {}", file, text);
  }
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), file_(other.file_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(file_, other.file_);
  return *this;
}

Statement::~Statement() { ::sqlite3_finalize(handle_); }

Statement& Statement::bind(int at, std::int64_t value) {
  ::sqlite3_bind_int64(handle_, at, value);
  return *this;
}

Statement& Statement::bind(int at, double value) {
  ::sqlite3_bind_double(handle_, at, value);
  return *this;
}

// An empty text is no NULL.
Statement& Statement::bind(int at, std::string_view text) {
  ::sqlite3_bind_text64(handle_, at, text.empty() ? "" : text.data(), text.size(), SQLITE_TRANSIENT,
                        SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_blob(int at, std::string_view bytes) {
  ::sqlite3_bind_blob64(handle_, at, bytes.empty() ? "" : bytes.data(), bytes.size(),
                        SQLITE_TRANSIENT);
  return *this;
}

Result<bool> Statement::step() {
  const int code = ::sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  Status status = code == SQLITE_DONE ? Status::ok()
                                      : sqlite_failure(*file_, ::sqlite3_db_handle(handle_), code);
  ::sqlite3_reset(handle_);
  if (!status.is_ok()) return status;
  return false;
}

Status Statement::run() {
  while (true) {
    PURLIN_ASSIGN(const bool more, step());
    if (!more) return Status::ok();
  }
}

void Statement::reset() { ::sqlite3_reset(handle_); }

std::int64_t Statement::integer(int column) const {
  return ::sqlite3_column_int64(handle_, column);
}

double Statement::real(int column) const { return ::sqlite3_column_double(handle_, column); }

std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(::sqlite3_column_text(handle_, column));
  if (bytes == nullptr) return "";
  return {bytes, static_cast<std::size_t>(::sqlite3_column_bytes(handle_, column))};
}

std::string_view Statement::blob(int column) const {
  const auto* bytes = static_cast<const char*>(::sqlite3_column_blob(handle_, column));
  if (bytes == nullptr) return "";
  return {bytes, static_cast<std::size_t>(::sqlite3_column_bytes(handle_, column))};
}

Result<Database> Database::open(const std::string& path, Mode mode) {
  const bool is_new = !file_exists(path);
  if (mode == Mode::kRead && is_new) return error(Code::kNotFound, "{}: no such file", path);
  Database database;
  database.path_ = std::make_unique<std::string>(path);
  // Readers write, too: to the index of the write-ahead log that all processes share.
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (mode == Mode::kWrite ? SQLITE_OPEN_CREATE : 0);
  const int code = ::sqlite3_open_v2(path.c_str(), &database.handle_, flags, nullptr);
  if (code != SQLITE_OK) return sqlite_failure(path, database.handle_, code);
  PURLIN_TRY(database.configure(mode));
  if (is_new) PURLIN_TRY(sync_folder(parent_path(path)));
  return database;
}

Status Database::configure(Mode mode) {
  ::sqlite3_extended_result_codes(handle_, 1);
  ::sqlite3_busy_timeout(handle_, kBusyTimeoutMs);
  ::sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  if (mode == Mode::kRead)
    return execute(
        "PRAGMA query_only = ON; PRAGMA cache_size = -32768; PRAGMA cell_size_check = ON");
  return execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;"
      "PRAGMA journal_size_limit = 67108864; PRAGMA cell_size_check = ON");
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  return *this;
}

// Statements may outlive it: SQLite closes with the last of them.
Database::~Database() { ::sqlite3_close_v2(handle_); }

Status Database::execute(const char* sql) {
  const int code = ::sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status::ok() : sqlite_failure(*path_, handle_, code);
}

Result<Statement> Database::prepare(std::string_view sql) {
  Statement statement;
  statement.file_ = path_.get();
  const int code = ::sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement.handle_, nullptr);
  if (code != SQLITE_OK) return sqlite_failure(*path_, handle_, code);
  return statement;
}

Result<std::int64_t> Database::integer(std::string_view sql) {
  PURLIN_ASSIGN(Statement statement, prepare(sql));
  PURLIN_ASSIGN(const bool found, statement.step());
  return found ? statement.integer(0) : 0;
}

bool Database::in_transaction() const { return ::sqlite3_get_autocommit(handle_) == 0; }

Result<Transaction> Transaction::begin(Database& database) {
  PURLIN_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ != nullptr && database_->in_transaction()) (void)database_->execute("ROLLBACK");
}

Status Transaction::commit() {
  PURLIN_TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return Status::ok();
}

}  // namespace purlin::store
