// SPDX-License-Identifier: Apache-2.0
// Finding the files of a run of rocprof.
#include "base/files.h"

#include "base/text.h"
#include "profile/import/csv.h"
#include "profile/import/rocm/rocprof_csv.h"
#include "profile/import/rocm/tables.h"

#include <algorithm>

namespace purlin::profile {
namespace {

constexpr std::size_t kMaxFiles = 10'000, kHeaderBytes = 16 << 10;
constexpr int kMaxDepth = 3;

Status collect(const std::string& folder, int depth, std::vector<std::string>& found) {
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(folder));
  for (const std::string& name : names) {
    const std::string path = join_path(folder, name);
    if (is_directory(path)) {
      if (depth > 0) PURLIN_TRY(collect(path, depth - 1, found));
    } else if (ends_with(name, ".csv") || ends_with(name, ".csv.gz")) {
      const Result<std::string> prefix = read_prefix(path, kHeaderBytes);
      if (prefix.is_ok() && looks_like_rocprof_csv(*prefix)) found.push_back(path);
      if (found.size() > kMaxFiles)
        return error(Code::kInvalid, "{}: more than {} files", folder, kMaxFiles);
    }
  }
  return Status::ok();
}

}  // namespace

bool looks_like_rocprof_csv(std::string_view prefix) {
  CsvReader reader(Input::from_bytes(prefix));
  while (reader.next_line().value_or(false)) {
    if (reader.fields().empty() || (reader.fields().size() == 1 && reader.field(0).empty()))
      continue;
    return RocprofColumns(reader.fields()).table() != RocprofTable::kNone;
  }
  return false;
}

Result<std::vector<std::string>> rocprof_files(const std::string& folder) {
  std::vector<std::string> found;
  PURLIN_TRY(collect(folder, kMaxDepth, found));
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace purlin::profile
