// SPDX-License-Identifier: Apache-2.0
// Reads the profiles of a verb: any number of files of any supported kind, merged, with progress on
// a terminal. The files of rocprof are parts of one run and are read together. Free functions.
#pragma once

#include "base/status.h"
#include "cli/frame/command.h"
#include "model/profile/profile.h"
#include "profile/import/import.h"

#include <string>
#include <vector>

namespace purlin::cli {

struct ProfileFile {
  std::string path;
  profile::Format format = profile::Format::kPurlin;
};

// The format of each file. The first file without a known format is an error.
Result<std::vector<ProfileFile>> detect_profiles(const std::vector<std::string>& paths);
// Warns about each damaged file.
Result<Profile> read_profiles(const Context& context, const std::vector<ProfileFile>& files);
Result<Profile> read_profiles(const Context& context, const std::vector<std::string>& paths);

}  // namespace purlin::cli
