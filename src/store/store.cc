// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include "store/clickhouse/client.h"
#include "store/clickhouse/store.h"
#include "store/sqlite/store.h"

namespace purlin::store {

Result<Ingest> Store::ingest(std::string hash, Batch batch) {
  std::vector<HashedBatch> one;
  one.push_back({std::move(hash), std::move(batch)});
  return ingest_many(one)[0];
}

namespace {

// "s3://bucket/x" is no folder, though one can be made of that name.
Status check_target(const std::string& target) {
  if (is_clickhouse_target(target) || target.find("://") == std::string::npos) return Status::ok();
  return error(Code::kInvalid,
               "'{}' is no store: give a folder, or http://HOST:PORT/DATABASE of a ClickHouse",
               target);
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(const std::string& target, const StoreOptions& options) {
  PURLIN_TRY(check_target(target));
  return is_clickhouse_target(target) ? open_clickhouse_store(target, options)
                                      : open_sqlite_store(target, options);
}

Result<std::unique_ptr<Reader>> open_reader(const std::string& target,
                                            const StoreOptions& options) {
  PURLIN_TRY(check_target(target));
  return is_clickhouse_target(target) ? open_clickhouse_reader(target, options)
                                      : open_sqlite_reader(target);
}

Status init_store(const std::string& target, const StoreOptions& options) {
  PURLIN_TRY(check_target(target));
  return is_clickhouse_target(target) ? init_clickhouse_store(target, options)
                                      : init_sqlite_store(target);
}

Result<StoreCheck> check_store(const std::string& target, const StoreOptions& options) {
  if (!is_clickhouse_target(target)) return check_sqlite_store(target);
  PURLIN_ASSIGN(const std::unique_ptr<Store> store, open_clickhouse_store(target, options));
  return store->check();
}

Result<std::vector<std::string>> migrate_store(const std::string& target,
                                               const StoreOptions& options) {
  if (!is_clickhouse_target(target)) return migrate_sqlite_store(target);
  // Its first schema is the present one; this also makes what is missing on a new server.
  PURLIN_TRY(init_clickhouse_store(target, options));
  return std::vector<std::string>();
}

}  // namespace purlin::store
