// SPDX-License-Identifier: Apache-2.0
// The tables of the store's SQLite files and the steps from one schema version to the next.
//
// The version is SQLite's user_version: the number of steps taken. A step is one transaction.
// Failure: kCorrupt where a newer Purlin wrote the file, kInvalid where it is older and nothing
// asked to migrate it.
#pragma once

#include "store/sqlite/database.h"

#include <vector>

namespace purlin::store {

using SchemaSteps = std::vector<const char*>;
const SchemaSteps& period_schema();  // hours, days and months
const SchemaSteps& catalog_schema();

Result<int> schema_version(Database& database);
// Takes the steps that are missing and returns how many these were.
Result<int> take_steps(Database& database, const SchemaSteps& steps);
// The version is the present one; an empty file has none.
Status check_schema_version(Database& database, const SchemaSteps& steps);
// Makes the tables of an empty file; else the version must be the present one.
Status require_schema(Database& database, const SchemaSteps& steps);

}  // namespace purlin::store
