// SPDX-License-Identifier: Apache-2.0
// rocpd: the SQLite database that rocprofv3 and rocprof-sys write. Tables end with the run's id.
// Schema 3 has times, agents and threads in the rows; schema 4 has them by reference, in the
// tables of timestamps and tracks. Which one it is, the columns say.
#pragma once

#include "profile/import/import.h"
#include "profile/import/nsys/sqlite_file.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile {

bool looks_like_rocpd(const std::vector<std::string>& tables);
// The importer over an open file.
Result<Profile> import_rocpd(const SqliteFile& file, const std::string& name,
                             const ImportOptions& options);

}  // namespace purlin::profile
