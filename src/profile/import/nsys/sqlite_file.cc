// SPDX-License-Identifier: Apache-2.0
#include "profile/import/nsys/sqlite_file.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <sqlite3.h>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxTables = 4096, kMaxColumns = 2048;
constexpr int kMaxRecordBytes = 256 << 20;
constexpr int kMaxSqlBytes = 1 << 20;
constexpr std::uint64_t kMinRowBytes = 2;  // what a row takes of a file, at the very least

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// For the URI that says "immutable".
std::string percent_encoded(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("/._-~", c) != nullptr) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string quoted_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// Queries may read tables, and nothing else: no function, no pragma, no change.
int authorize(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
}

struct Statement {
  sqlite3_stmt* handle = nullptr;
  Statement() = default;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { ::sqlite3_finalize(handle); }
  std::string_view text(int column) const {
    const unsigned char* bytes = ::sqlite3_column_text(handle, column);
    if (bytes == nullptr) return "";
    return {reinterpret_cast<const char*>(bytes),
            static_cast<std::size_t>(::sqlite3_column_bytes(handle, column))};
  }
};

}  // namespace

struct SqliteFile::State {
  sqlite3* db = nullptr;
  std::string name;
  std::uint64_t bytes = 0;
  struct Table {
    std::string name;
    std::set<std::string> columns;  // lower case
    std::string key;                // the column that is the row's number, "" for none
  };
  std::map<std::string, Table> tables;  // by lower case name

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ::sqlite3_close(db); }

  const Table* table(std::string_view wanted) const {
    const auto at = tables.find(lower(wanted));
    return at != tables.end() ? &at->second : nullptr;
  }
  Status failure(int code, std::string_view what) const {
    const bool foreign = code == SQLITE_NOTADB;
    return error(foreign ? Code::kInvalid : Code::kCorrupt, "{}: {}: {}", name, what,
                 ::sqlite3_errmsg(db));
  }
  Status prepare(const std::string& sql, Statement& statement) const {
    const int code = ::sqlite3_prepare_v2(db, sql.c_str(), static_cast<int>(sql.size()),
                                          &statement.handle, nullptr);
    return code == SQLITE_OK ? Status::ok() : failure(code, "cannot be read");
  }
  Status read_tables();
};

Status SqliteFile::State::read_tables() {
  Statement master;
  PURLIN_TRY(prepare("SELECT name, sql FROM sqlite_master WHERE type = 'table'", master));
  int code;
  while ((code = ::sqlite3_step(master.handle)) == SQLITE_ROW && tables.size() < kMaxTables) {
    const std::string table(master.text(0));
    if (starts_with(lower(master.text(1).substr(0, 32)), "create virtual")) continue;
    if (!table.empty()) tables[lower(table)].name = table;
  }
  if (code != SQLITE_DONE && code != SQLITE_ROW) return failure(code, "its schema cannot be read");
  for (auto& [key, table] : tables) {
    Statement info;  // generated columns are not in table_info, and so never asked for
    PURLIN_TRY(prepare("PRAGMA table_info(" + quoted_name(table.name) + ")", info));
    int keys = 0;
    while (::sqlite3_step(info.handle) == SQLITE_ROW && table.columns.size() < kMaxColumns) {
      table.columns.insert(lower(info.text(1)));
      if (::sqlite3_column_int(info.handle, 5) == 0) continue;
      const bool alias = ++keys == 1 && lower(info.text(2)) == "integer";
      table.key = alias ? lower(info.text(1)) : "";
    }
  }
  return Status::ok();
}

SqliteFile::SqliteFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SqliteFile::SqliteFile(SqliteFile&&) noexcept = default;
SqliteFile& SqliteFile::operator=(SqliteFile&&) noexcept = default;
SqliteFile::~SqliteFile() = default;

Result<SqliteFile> SqliteFile::open(const std::string& path) {
  if (!file_exists(path)) return error(Code::kNotFound, "{}: no such file", path);
  auto state = std::make_unique<State>();
  state->name = path;
  PURLIN_ASSIGN(state->bytes, file_size(path));
  const std::string uri = "file://" + percent_encoded(absolute_path(path)) + "?mode=ro&immutable=1";
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  if (::sqlite3_open_v2(uri.c_str(), &state->db, flags, nullptr) != SQLITE_OK)
    return error(Code::kIo, "{}: {}", path,
                 state->db != nullptr ? ::sqlite3_errmsg(state->db) : "out of memory");
  return prepare(std::move(state));
}

Result<SqliteFile> SqliteFile::from_bytes(std::string_view bytes) {
  auto state = std::make_unique<State>();
  state->name = "(memory)";
  state->bytes = bytes.size();
  if (::sqlite3_open_v2(":memory:", &state->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                        nullptr) != SQLITE_OK)
    return error(Code::kFailed, "SQLite does not start");
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  auto* copy = static_cast<unsigned char*>(::sqlite3_malloc64(bytes.size() + 1));
  if (copy == nullptr) return error(Code::kFailed, "out of memory");
  std::memcpy(copy, bytes.data(), bytes.size());
  const int code = ::sqlite3_deserialize(
      state->db, "main", copy, size, size,
      SQLITE_DESERIALIZE_READONLY | SQLITE_DESERIALIZE_FREEONCLOSE);  // frees it on failure too
  if (code != SQLITE_OK) return state->failure(code, "cannot be read");
  return prepare(std::move(state));
}

Result<SqliteFile> SqliteFile::prepare(std::unique_ptr<State> state) {
  sqlite3* db = state->db;
  ::sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  ::sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  ::sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  ::sqlite3_limit(db, SQLITE_LIMIT_LENGTH, kMaxRecordBytes);
  ::sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, kMaxSqlBytes);
  ::sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  // Cells are checked as pages come in; the file is not mapped, so that one that shrinks under way
  // is a read error and not a signal.
  for (const char* pragma : {"PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0"})
    ::sqlite3_exec(db, pragma, nullptr, nullptr, nullptr);
  PURLIN_TRY(state->read_tables());
  ::sqlite3_set_authorizer(db, authorize, nullptr);
  return SqliteFile(std::move(state));
}

bool SqliteFile::has(std::string_view table) const { return state_->table(table) != nullptr; }

bool SqliteFile::has(std::string_view table, std::string_view column) const {
  const State::Table* found = state_->table(table);
  return found != nullptr && found->columns.count(lower(column)) > 0;
}

bool SqliteFile::is_key(std::string_view table, std::string_view column) const {
  const State::Table* found = state_->table(table);
  return found != nullptr && found->key == lower(column);
}

std::vector<std::string> SqliteFile::tables() const {
  std::vector<std::string> names;
  for (const auto& [key, table] : state_->tables) names.push_back(table.name);
  return names;
}

std::uint64_t SqliteFile::file_bytes() const { return state_->bytes; }

std::uint64_t SqliteFile::row_bound(std::string_view table) const {
  const State::Table* found = state_->table(table);
  if (found == nullptr) return 0;
  Statement statement;  // walks to the last leaf; a table WITHOUT ROWID has no such number
  const std::string sql =
      "SELECT rowid FROM " + quoted_name(found->name) + " ORDER BY rowid DESC LIMIT 1";
  const std::uint64_t room = state_->bytes / kMinRowBytes;
  if (!state_->prepare(sql, statement).is_ok()) return room;
  if (::sqlite3_step(statement.handle) != SQLITE_ROW) return 0;
  const sqlite3_int64 last = ::sqlite3_column_int64(statement.handle, 0);
  return last > 0 ? std::min(room, static_cast<std::uint64_t>(last)) : room;
}

Result<SqliteFile::Rows> SqliteFile::query(std::string_view table, Columns columns,
                                           const std::string& rest) const {
  const State::Table* found = state_->table(table);
  if (found == nullptr) return error(Code::kNotFound, "{}: no table '{}'", state_->name, table);
  std::string sql = "SELECT ";
  for (const std::string_view column : columns) {
    if (sql.size() > 7) sql += ", ";
    sql += found->columns.count(lower(column)) > 0 ? quoted_name(column) : "NULL";
  }
  sql += " FROM " + quoted_name(found->name) + rest;
  Statement statement;
  PURLIN_TRY(state_->prepare(sql, statement).with_context(std::string(table)));
  return Rows(std::exchange(statement.handle, nullptr), std::string(table),
              state_->bytes / kMinRowBytes);
}

Result<SqliteFile::Rows> SqliteFile::select(std::string_view table, Columns columns,
                                            std::string_view order_by) const {
  return query(table, columns,
               has(table, order_by) ? " ORDER BY " + quoted_name(order_by) : std::string());
}

Result<SqliteFile::Rows> SqliteFile::find(std::string_view table, Columns columns,
                                          std::string_view key) const {
  if (!has(table, key))
    return error(Code::kNotFound, "{}: no column '{}' in table '{}'", state_->name, key, table);
  return query(table, columns, " WHERE " + quoted_name(key) + " = ?1");
}

SqliteFile::Rows::Rows(Rows&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)),
      table_(std::move(other.table_)),
      limit_(other.limit_),
      count_(other.count_) {}

SqliteFile::Rows::~Rows() { ::sqlite3_finalize(statement_); }

Result<bool> SqliteFile::Rows::next() {
  const int code = ::sqlite3_step(statement_);
  if (code == SQLITE_DONE) return false;
  if (code == SQLITE_ROW && count_++ < limit_) return true;
  return error(Code::kCorrupt, "table {} is damaged behind row {}: {}", table_,
               code == SQLITE_ROW ? limit_ : count_,
               code == SQLITE_ROW ? "it has more rows than the file has room for"
                                  : ::sqlite3_errmsg(::sqlite3_db_handle(statement_)));
}

Status SqliteFile::Rows::rewind(std::int64_t key) {
  ::sqlite3_reset(statement_);
  count_ = 0;
  return ::sqlite3_bind_int64(statement_, 1, key) == SQLITE_OK
             ? Status::ok()
             : error(Code::kFailed, "table {}: {}", table_,
                     ::sqlite3_errmsg(::sqlite3_db_handle(statement_)));
}

bool SqliteFile::Rows::is_null(int column) const {
  return ::sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::optional<std::int64_t> SqliteFile::Rows::integer(int column) const {
  if (::sqlite3_column_type(statement_, column) == SQLITE_INTEGER)
    return ::sqlite3_column_int64(statement_, column);
  const std::optional<double> value = real(column);
  if (!value || !(std::fabs(*value) < 9e18)) return std::nullopt;
  return std::llround(*value);
}

std::optional<double> SqliteFile::Rows::real(int column) const {
  const int type = ::sqlite3_column_type(statement_, column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return ::sqlite3_column_double(statement_, column);
}

std::string_view SqliteFile::Rows::text(int column) const {
  if (::sqlite3_column_type(statement_, column) != SQLITE_TEXT) return "";
  const unsigned char* bytes = ::sqlite3_column_text(statement_, column);
  if (bytes == nullptr) return "";
  return {reinterpret_cast<const char*>(bytes),
          static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column))};
}

}  // namespace purlin::profile
