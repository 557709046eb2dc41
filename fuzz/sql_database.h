// SPDX-License-Identifier: Apache-2.0
// Databases for fuzz targets that read SQLite, made from statements: databases by their bytes are
// all checks and offsets; as SQL the fuzzer finds shapes of schemas. One thread. "" on failure.
#pragma once

#include <cstddef>
#include <sqlite3.h>
#include <string>
#include <string_view>

inline std::string database_of(std::string_view sql) {
  sqlite3* db = nullptr;
  if (::sqlite3_open(":memory:", &db) != SQLITE_OK) return "";
  ::sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
  ::sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 25'000);
  ::sqlite3_progress_handler(
      db, 200'000, [](void*) { return 1; }, nullptr);
  ::sqlite3_exec(db, std::string(sql).c_str(), nullptr, nullptr, nullptr);
  sqlite3_int64 size = 0;
  unsigned char* bytes = ::sqlite3_serialize(db, "main", &size, 0);
  std::string database(bytes != nullptr ? reinterpret_cast<char*>(bytes) : "",
                       bytes != nullptr ? static_cast<std::size_t>(size) : 0);
  ::sqlite3_free(bytes);
  ::sqlite3_close(db);
  return database;
}
