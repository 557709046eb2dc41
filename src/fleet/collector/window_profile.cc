// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/window_profile.h"

#include "analyze/phase/slice.h"
#include "base/text.h"
#include "profile/format/file.h"
#include "profile/format/merge.h"

#include <sys/stat.h>

namespace purlin::fleet {
namespace {

Result<Profile> part_in(int file, std::int64_t begin_ns, std::int64_t end_ns,
                        const WindowLimits& limits) {
  struct stat info {};
  if (::fstat(file, &info) != 0 || static_cast<std::uint64_t>(info.st_size) > limits.max_file_bytes)
    return error(Code::kInvalid,
                 "a capture file has more than {} MiB; start the program with `purlin env`, which "
                 "bounds files",
                 limits.max_file_bytes >> 20);
  profile::ReadOptions options;
  options.max_timeline_events = limits.max_events;
  options.workers = 1;
  PURLIN_ASSIGN(Profile all, profile::read_profile(fmt::format("/proc/self/fd/{}", file), options));
  all.partial = false;  // it goes on: what counts is before the last seal
  sort_timeline(all.timeline);
  std::vector<analyze::DeviceWindow> windows;
  for (std::size_t i = 0; i < all.environment.devices.size(); ++i)
    windows.push_back({static_cast<int>(i), {begin_ns, end_ns}});
  return analyze::slice(all, windows);
}

}  // namespace

Result<std::string> window_profile(const std::vector<int>& files, std::int64_t begin_ns,
                                   std::int64_t end_ns, const WindowLimits& limits) {
  Profile window;
  {
    profile::Merger merger(window, limits.max_events);
    for (const int file : files) {
      PURLIN_ASSIGN(const Profile part, part_in(file, begin_ns, end_ns, limits));
      if (!part.timeline.empty()) merger.add(part);
    }
    merger.finish();
  }
  if (window.timeline.empty())
    return error(Code::kInvalid, "the processes made no launch in the window");
  window.timeline.begin_ns = begin_ns;
  window.timeline.end_ns = end_ns;
  window.coverage.notes.push_back({"requested_window",
                                   "this is a window that was requested through the server: the "
                                   "rows are its launches. What was "
                                   "seen and lost is of the capture files that it was cut from",
                                   0, static_cast<double>(end_ns - begin_ns) * 1e-9});
  return profile::encode_profile(window);
}

}  // namespace purlin::fleet
