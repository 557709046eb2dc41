// SPDX-License-Identifier: Apache-2.0
// Profiles as the verbs take them: any number of files of any supported kind, read and merged, with
// progress on a terminal. rocprof's files are one run's parts and are read as such.
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

// What each file is; the first that is no profile fails.
Result<std::vector<ProfileFile>> detect_profiles(const std::vector<std::string>& paths);
// Warns of each that is damaged.
Result<Profile> read_profiles(const Context& context, const std::vector<ProfileFile>& files);
Result<Profile> read_profiles(const Context& context, const std::vector<std::string>& paths);

}  // namespace purlin::cli
