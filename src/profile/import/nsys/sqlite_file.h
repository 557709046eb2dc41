// SPDX-License-Identifier: Apache-2.0
// SqliteFile: the tables of a foreign SQLite file, opened read-only and immutable: nothing is
// written, no journal is replayed, no view, trigger, function or virtual table of the file runs.
// Which tables and columns there are is asked, never assumed: an absent column reads as NULL.
//
// Memory is SQLite's page cache and one row. A file whose pages go in circles ends as damaged: no
// table yields more rows than the file has room for. Owns the open file; Rows must not outlive it.
// Not thread-safe.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3_stmt;

namespace purlin::profile {

class SqliteFile {
 public:
  // kNotFound, kIo; kInvalid where it is no SQLite file, kCorrupt where its schema is damaged.
  static Result<SqliteFile> open(const std::string& path);
  // The same over bytes in memory, which are copied: fuzzing.
  static Result<SqliteFile> from_bytes(std::string_view bytes);
  SqliteFile(SqliteFile&&) noexcept;
  SqliteFile& operator=(SqliteFile&&) noexcept;
  ~SqliteFile();

  bool has(std::string_view table) const;  // as a plain table
  bool has(std::string_view table, std::string_view column) const;
  bool is_key(std::string_view table, std::string_view column) const;  // found without a search
  std::vector<std::string> tables() const;
  std::uint64_t file_bytes() const;
  // An upper bound of the rows of a table, without reading it: its highest row number.
  std::uint64_t row_bound(std::string_view table) const;

  class Rows {
   public:
    Rows(Rows&& other) noexcept;
    Rows& operator=(Rows&&) = delete;
    ~Rows();
    Result<bool> next();              // kCorrupt names the table and the row
    Status rewind(std::int64_t key);  // of find(): the rows of another key
    bool is_null(int column) const;
    std::optional<std::int64_t> integer(int column) const;  // whole numbers
    std::optional<double> real(int column) const;           // any number
    std::string_view text(int column) const;                // "" where it is no text
    std::uint64_t count() const { return count_; }          // rows so far

   private:
    friend class SqliteFile;
    Rows(sqlite3_stmt* statement, std::string table, std::uint64_t limit)
        : statement_(statement), table_(std::move(table)), limit_(limit) {}
    sqlite3_stmt* statement_;
    std::string table_;
    std::uint64_t limit_, count_ = 0;
  };
  using Columns = std::initializer_list<std::string_view>;
  Result<Rows> select(std::string_view table, Columns columns,
                      std::string_view order_by = "") const;
  // The rows whose `key` column has the value given to rewind.
  Result<Rows> find(std::string_view table, Columns columns, std::string_view key) const;

 private:
  struct State;
  explicit SqliteFile(std::unique_ptr<State> state);
  static Result<SqliteFile> prepare(std::unique_ptr<State> state);
  Result<Rows> query(std::string_view table, Columns columns, const std::string& rest) const;
  std::unique_ptr<State> state_;
};

}  // namespace purlin::profile
