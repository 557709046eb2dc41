// SPDX-License-Identifier: Apache-2.0
// rocprof's CSV files as one run: calls, kernels, copies, counters and agents are in separate
// files, which belong together by the beginning of their names. import_rocprof_csv of import.h
// takes one file or a folder of them.
#pragma once

#include "profile/import/import.h"
#include "profile/import/input.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile {

// By the header at the beginning of a file.
bool looks_like_rocprof_csv(std::string_view prefix);
// The CSV files of rocprof in a folder and up to three folders deep in it, sorted.
Result<std::vector<std::string>> rocprof_files(const std::string& folder);

struct RocprofFile {
  std::string name;
  std::function<Result<Input>()> open;
};
Result<Profile> import_rocprof_csv(const std::vector<RocprofFile>& files,
                                   const ImportOptions& options);
Result<Profile> import_rocprof_csv(const std::vector<std::string>& paths,
                                   const ImportOptions& options);

}  // namespace purlin::profile
