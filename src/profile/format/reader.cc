// SPDX-License-Identifier: Apache-2.0
#include "profile/format/file.h"
#include "profile/format/stream.h"

namespace purlin::profile {
namespace {

Result<Profile> finish(ProfileStream& stream, const ReadOptions& options) {
  const std::size_t workers = options.workers > 0 ? options.workers : default_workers();
  PURLIN_TRY(stream.fold_launches(workers));
  PURLIN_TRY(stream.load_timeline(options.max_timeline_events, workers));
  Profile profile = stream.take();
  sort_timeline(profile.timeline);  // a capture writes launches as they end
  return profile;
}

}  // namespace

Result<Profile> decode_profile(std::string_view bytes, const ReadOptions& options) {
  PURLIN_ASSIGN(ProfileStream stream, ProfileStream::over(bytes));
  return finish(stream, options);
}

Result<Profile> read_profile(const std::string& path, const ReadOptions& options) {
  PURLIN_ASSIGN(ProfileStream stream, ProfileStream::open(path));
  Result<Profile> profile = finish(stream, options);
  if (!profile.is_ok() && profile.status().code() != Code::kIo)
    return profile.status().with_context(path);
  return profile;
}

}  // namespace purlin::profile
