// SPDX-License-Identifier: Apache-2.0
// Client: statements to one ClickHouse server over HTTP; rows go and come in RowBinary.
//
// One thread. Failure: kUnavailable (no connection, too busy, a shard is missing), kTimeout,
// kNotFound (no such table or database), kInvalid (refused: user, password), kIo (the server's
// other errors, with its text).
#pragma once

#include "base/status.h"
#include "blobs/http.h"
#include "profile/format/wire.h"
#include "store/store.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

// http://[USER@]HOST[:PORT]/DATABASE[?cluster=NAME]
struct ClickhouseTarget {
  std::string url;  // "http://127.0.0.1:8123"
  std::string user, password, database, cluster;
};
// kInvalid where it is none. The password is that of the options, else PURLIN_CLICKHOUSE_PASSWORD.
Result<ClickhouseTarget> parse_clickhouse_target(const std::string& target,
                                                 const StoreOptions& options);
bool is_clickhouse_target(std::string_view target);

class Client {
 public:
  static Result<Client> connect(ClickhouseTarget target);
  const ClickhouseTarget& target() const { return target_; }
  const std::string& version() const { return version_; }  // "18.16.1"
  bool is_at_least(int major, int minor) const;

  // {db} in a statement is the database.
  Status execute(const std::string& sql);
  // The rows of a SELECT, in RowBinary.
  Result<std::string> select(const std::string& sql);
  Result<std::int64_t> integer(const std::string& sql);  // one toInt64(…); 0 without a row
  // Rows in RowBinary, in the order of the columns: "dict(kind, id)".
  Status insert(const std::string& table_and_columns, std::string_view rows);

 private:
  Client(ClickhouseTarget target, std::unique_ptr<blobs::HttpClient> http)
      : target_(std::move(target)), http_(std::move(http)) {}
  Result<std::string> send(const std::string& sql, std::string_view rows, bool is_insert);
  ClickhouseTarget target_;
  std::unique_ptr<blobs::HttpClient> http_;
  std::string version_;
  int major_ = 0, minor_ = 0;
};

// 'text' with what SQL would obey escaped.
std::string sql_text(std::string_view text);
// Arrays in RowBinary.
std::vector<std::int32_t> read_int32s(profile::wire::Decoder& in);
std::vector<double> read_reals(profile::wire::Decoder& in);
// The name of a table's column list, with the database: "`db`.dict".
std::string with_database(std::string sql, const std::string& database);

}  // namespace purlin::store
