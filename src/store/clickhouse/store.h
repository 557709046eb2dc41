// SPDX-License-Identifier: Apache-2.0
// The ClickHouse engine: tables of a database over HTTP (docs/formats/store.md). See store/store.h.
#pragma once

#include "store/store.h"

#include <memory>
#include <string>
#include <vector>

namespace purlin::store {

Result<std::unique_ptr<Store>> open_clickhouse_store(const std::string& target,
                                                     const StoreOptions& options);
Result<std::unique_ptr<Reader>> open_clickhouse_reader(const std::string& target,
                                                       const StoreOptions& options);
Status init_clickhouse_store(const std::string& target, const StoreOptions& options);

}  // namespace purlin::store
