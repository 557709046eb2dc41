// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/files.h"

#include "base/files.h"
#include "profile/format/merge.h"
#include "profile/import/rocm/rocprof_csv.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace purlin::cli {
namespace {

using profile::Format;

// The maximum of all files together. It keeps the verbs within 1 GiB: an event takes 48 bytes, and
// twice that while timelines are joined and sorted.
constexpr std::size_t kMaxTimelineEvents = 8'000'000;

// The files of a folder are listed one by one, to merge them with others of the run.
Result<std::vector<std::string>> rocprof_paths(const std::vector<ProfileFile>& files) {
  std::vector<std::string> paths;
  for (const ProfileFile& file : files) {
    if (file.format != Format::kRocprofCsv) continue;
    if (!is_directory(file.path)) {
      paths.push_back(file.path);
      continue;
    }
    PURLIN_ASSIGN(const std::vector<std::string> inside, profile::rocprof_files(file.path));
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

}  // namespace

Result<std::vector<ProfileFile>> detect_profiles(const std::vector<std::string>& paths) {
  std::vector<ProfileFile> files;
  for (const std::string& path : paths) {
    PURLIN_ASSIGN(const Format format, profile::detect_format(path));
    files.push_back({path, format});
  }
  return files;
}

Result<Profile> read_profiles(const Context& context, const std::vector<ProfileFile>& files) {
  Progress progress(stderr, context.error_terminal,
                    context.error_terminal.interactive() && !context.quiet);
  std::string reading;
  profile::ImportOptions options;
  options.max_timeline_events = kMaxTimelineEvents;
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    const double share = all > 0 ? static_cast<double>(done) / static_cast<double>(all) : 0;
    progress.update(all > 0
                        ? fmt::format("reading {}: {:.0f} %", reading, 100 * std::min(share, 1.0))
                        : fmt::format("reading {}", reading));
  };
  PURLIN_ASSIGN(const std::vector<std::string> rocprof, rocprof_paths(files));

  Profile merged;
  std::optional<profile::Merger> merger;  // from the second file on
  bool first = true;
  // A file named twice, or a glob with a profile and its spool: an easy mistake that the sums do
  // not show.
  std::set<std::tuple<std::int64_t, std::int64_t, std::string>> taken;
  const auto warn_of_doubles = [&](const std::string& path, const Profile& profile) {
    const auto known = [&](const ProcessInfo& process) {
      return process.start_ns != 0 &&
             taken.count({process.pid, process.start_ns, process.layer}) > 0;
    };
    const auto& processes = profile.processes;
    if (const auto twice = std::find_if(processes.begin(), processes.end(), known);
        twice != processes.end()) {
      progress.clear();
      context.log.warn("{}: process {} was in a file before: what it did counts twice", path,
                       twice->pid);
    }
    for (const ProcessInfo& process : processes)
      taken.emplace(process.pid, process.start_ns, process.layer);
  };
  const auto take = [&](const std::string& path, Result<Profile> read) -> Status {
    if (!read.is_ok()) return read.status();
    if (read->partial) {
      progress.clear();
      context.log.warn("{} is damaged or was cut short; taken as far as it reads", path);
    }
    warn_of_doubles(path, *read);
    if (std::exchange(first, false)) {
      merged = std::move(read).value();
      return Status::ok();
    }
    if (!merger) merger.emplace(merged, kMaxTimelineEvents);
    merger->add(*read);
    return Status::ok();
  };
  // The limit of the next file is the rest that the earlier files left.
  const auto rest = [&] {
    const std::size_t held = merger ? merger->timeline_events() : event_count(merged.timeline);
    options.max_timeline_events = kMaxTimelineEvents - std::min(held, kMaxTimelineEvents);
    return options;
  };
  bool rocprof_read = false;
  for (const ProfileFile& file : files) {
    reading = base_name(file.path);
    if (file.format != Format::kRocprofCsv) {
      PURLIN_TRY(take(file.path, profile::open_profile(file.path, rest())));
    } else if (!std::exchange(rocprof_read, true)) {
      PURLIN_TRY(take(file.path, profile::import_rocprof_csv(rocprof, rest())));
    }
  }
  if (first) return error(Code::kInvalid, "no profile given");
  if (merger) merger->finish();
  merger.reset();
  return merged;
}

Result<Profile> read_profiles(const Context& context, const std::vector<std::string>& paths) {
  PURLIN_ASSIGN(const std::vector<ProfileFile> files, detect_profiles(paths));
  return read_profiles(context, files);
}

}  // namespace purlin::cli
