// SPDX-License-Identifier: Apache-2.0
// The SQLite engine: a folder of files (docs/formats/store.md). See store/store.h.
#pragma once

#include "store/store.h"

#include <memory>
#include <string>
#include <vector>

namespace purlin::store {

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& root,
                                                 const StoreOptions& options);
Result<std::unique_ptr<Reader>> open_sqlite_reader(const std::string& root);
Result<StoreCheck> check_sqlite_store(const std::string& root);
Status init_sqlite_store(const std::string& root);
Result<std::vector<std::string>> migrate_sqlite_store(const std::string& root);

}  // namespace purlin::store
