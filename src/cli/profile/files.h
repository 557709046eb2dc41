// SPDX-License-Identifier: Apache-2.0
// Reads the profiles of a verb: any number of files of any supported kind, merged, with progress on
// a terminal. "-" is standard input, and a pipe is read first. The files of rocprof are
// parts of one run and are read together. Free functions.
#pragma once

#include "base/status.h"
#include "cli/frame/command.h"
#include "cli/profile/stream.h"
#include "model/profile/profile.h"
#include "profile/import/import.h"

#include <memory>
#include <string>
#include <vector>

namespace purlin::cli {

struct ProfileFile {
  std::string path;  // to read
  profile::Format format = profile::Format::kPurlin;
  std::string name;                          // for people: what the user gave
  std::shared_ptr<const StreamCopy> stream;  // the owner of the path, if it was a pipe
};

// The format of each file. The first file without a known format is an error. Pipes are read here,
// once: give the result to read_profiles.
Result<std::vector<ProfileFile>> detect_profiles(const std::vector<std::string>& paths);
// Warns about each damaged file.
Result<Profile> read_profiles(const Context& context, const std::vector<ProfileFile>& files);
Result<Profile> read_profiles(const Context& context, const std::vector<std::string>& paths);

}  // namespace purlin::cli
