// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include "base/text.h"
#include "store/sqlite/store.h"

namespace purlin::store {

Result<Ingest> Store::ingest(std::string hash, Batch batch) {
  std::vector<HashedBatch> one;
  one.push_back({std::move(hash), std::move(batch)});
  return ingest_many(one)[0];
}

Result<std::unique_ptr<Store>> open_store(const std::string& target, const StoreOptions& options) {
  return open_sqlite_store(target, options);
}

Result<std::unique_ptr<Reader>> open_reader(const std::string& target, const StoreOptions&) {
  return open_sqlite_reader(target);
}

Status init_store(const std::string& target, const StoreOptions&) {
  return init_sqlite_store(target);
}

Result<std::vector<std::string>> migrate_store(const std::string& target, const StoreOptions&) {
  return migrate_sqlite_store(target);
}

}  // namespace purlin::store
