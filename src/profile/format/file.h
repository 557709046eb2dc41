// SPDX-License-Identifier: Apache-2.0
// The profile file: reading, writing, merging. The format is docs/formats/profile.md.
//
// A file is a sequence of checksummed chunks; everything up to the last seal is consistent, so a
// file whose writer was killed is readable up to there and comes back with Profile::partial set.
// Capture libraries write such files chunk by chunk (profile/spool.h); write_profile writes
// a whole one. Files are foreign input: nothing in them is trusted. Pure functions over values.
#pragma once

#include "base/status.h"
#include "model/profile/profile.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile {

struct ReadOptions {
  // Activities, calls, ops and ranges held, together, in whole chunks; those that begin first. The
  // rest is counted in Timeline::left_out.
  std::size_t max_timeline_events = 8'000'000;  // 48 bytes each
  std::size_t workers = 0;                      // threads; 0 = the processors
};

// Files may be of any size: what is held is the rows and the timeline up to its bound. Rows without
// a sketch get one from their launches. kCorrupt naming the byte offset when there is no seal to
// read up to or a sealed chunk makes no sense, kInvalid when it is no profile.
Result<Profile> read_profile(const std::string& path, const ReadOptions& options = {});
// Written piece by piece, there when it is whole.
Status write_profile(const std::string& path, const Profile& profile);
// The same over bytes in memory.
Result<Profile> decode_profile(std::string_view bytes, const ReadOptions& options = {});
std::string encode_profile(const Profile& profile);

// Adds one profile to another; for many there is Merger (profile/format/merge.h).
void merge_into(Profile& into, const Profile& from);
// Every *.plprof of a folder, merged: the processes of one run. Files that cannot be read are named
// in the coverage notes. An empty folder is an empty profile.
Result<Profile> read_spool(const std::string& directory, const ReadOptions& options = {});

}  // namespace purlin::profile
