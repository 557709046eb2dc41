// SPDX-License-Identifier: Apache-2.0
// Database: one SQLite file of the store, its statements and transactions.
//
// Write-ahead log, synchronous=FULL: a commit that returned is on the disk. Statement binds by
// position from 1 and reads columns from 0. One thread. Failure: kCorrupt names the file that is
// damaged, kIo the operating system's refusal (a full disk among them), kUnavailable a lock.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

struct sqlite3;
struct sqlite3_stmt;

namespace purlin::store {

class Statement {
 public:
  Statement() = default;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, double value);
  Statement& bind(int at, std::string_view text);
  Statement& bind_blob(int at, std::string_view bytes);
  Result<bool> step();  // false: no row left; the statement is then ready for new values
  Status run();         // to its end
  void reset();
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;  // valid until the next step
  std::string_view blob(int column) const;

 private:
  friend class Database;
  sqlite3_stmt* handle_ = nullptr;
  const std::string* file_ = nullptr;
};

class Database {
 public:
  enum class Mode { kWrite, kRead };
  // kWrite makes a file that is missing, and its name durable. kRead: kNotFound.
  static Result<Database> open(const std::string& path, Mode mode);
  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  Status execute(const char* sql);
  Result<Statement> prepare(std::string_view sql);
  Result<std::int64_t> integer(std::string_view sql);  // the first value of the first row, or 0
  bool in_transaction() const;
  const std::string& path() const { return *path_; }

 private:
  Database() = default;
  Status configure(Mode mode);
  sqlite3* handle_ = nullptr;
  std::unique_ptr<std::string> path_;
};

// Rolls back where commit() was not called.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace purlin::store
