// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/store.h"

#include "store/clickhouse/engine.h"
#include "store/clickhouse/schema.h"

namespace purlin::store {
namespace {

Result<Client> connect_to(const std::string& target, const StoreOptions& options) {
  PURLIN_ASSIGN(ClickhouseTarget parsed, parse_clickhouse_target(target, options));
  return Client::connect(std::move(parsed));
}

}  // namespace

Result<std::unique_ptr<Store>> open_clickhouse_store(const std::string& target,
                                                     const StoreOptions& options) {
  PURLIN_ASSIGN(Client client, connect_to(target, options));
  PURLIN_TRY(require_clickhouse_schema(client));
  return std::unique_ptr<Store>(
      std::make_unique<ClickhouseStore>(std::move(client), target, options));
}

Result<std::unique_ptr<Reader>> open_clickhouse_reader(const std::string& target,
                                                       const StoreOptions& options) {
  PURLIN_ASSIGN(Client client, connect_to(target, options));
  PURLIN_TRY(require_clickhouse_schema(client));
  return std::unique_ptr<Reader>(std::make_unique<ClickhouseReader>(std::move(client)));
}

Status init_clickhouse_store(const std::string& target, const StoreOptions& options) {
  PURLIN_ASSIGN(Client client, connect_to(target, options));
  return make_clickhouse_tables(client);
}

}  // namespace purlin::store
