// SPDX-License-Identifier: Apache-2.0
#include "cli/profile/files.h"

#include "base/files.h"
#include "base/os/descriptor.h"
#include "base/text.h"
#include "profile/format/merge.h"
#include "profile/import/flow/flow.h"
#include "profile/import/rocm/rocprof_csv.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <set>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
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

constexpr std::string_view kStandardInput = "-";

bool is_pipe(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode);
}

// A copy of the stream with this name; null for a regular file.
Result<std::shared_ptr<const StreamCopy>> copied_stream(const std::string& name) {
  if (name == kStandardInput) {
    if (::isatty(STDIN_FILENO) != 0)
      return error(Code::kInvalid,
                   "-: standard input is a terminal; pipe a profile into it, or name a file");
    return StreamCopy::read(STDIN_FILENO, "standard input");
  }
  if (!is_pipe(name)) return std::shared_ptr<const StreamCopy>();
  const Descriptor pipe(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (pipe.get() < 0) return error(Code::kIo, "cannot read '{}': {}", name, std::strerror(errno));
  return StreamCopy::read(pipe.get(), name);
}

// Warnings of one kind, as one line: a fleet has thousands of files.
class AlikeWarnings {
 public:
  void add(std::string what) {
    if (shown_.size() < kShownWarnings) shown_.push_back(std::move(what));
    ++count_;
  }
  void print(Log& log, std::string_view what) const {
    if (count_ == 0) return;
    std::string list = join(shown_, ", ");
    if (count_ > shown_.size()) list += fmt::format(" and {} more", count_ - shown_.size());
    log.warn("{}: {}", what, list);
  }

 private:
  static constexpr std::size_t kShownWarnings = 3;
  std::vector<std::string> shown_;
  std::size_t count_ = 0;
};

// The failure with the name that the user gave. The copy's path says nothing, and its file is gone.
Status in_words_of_user(const Status& status, const ProfileFile& file) {
  if (file.stream == nullptr) return status;
  std::string message = status.message();
  for (std::size_t at = 0; (at = message.find(file.path, at)) != std::string::npos;
       at += file.name.size())
    message.replace(at, file.path.size(), file.name);
  return {status.code(), message};
}

}  // namespace

Result<std::vector<ProfileFile>> detect_profiles(const std::vector<std::string>& paths) {
  if (std::count(paths.begin(), paths.end(), kStandardInput) > 1)
    return error(Code::kInvalid, "-: standard input can be read once; name it once");
  std::vector<ProfileFile> files;
  for (const std::string& name : paths) {
    ProfileFile file;
    file.name = name;
    PURLIN_ASSIGN(file.stream, copied_stream(name));
    file.path = file.stream != nullptr ? file.stream->path() : name;
    Result<Format> format = profile::detect_format(file.path);
    if (!format.is_ok()) return in_words_of_user(format.status(), file);
    file.format = *format;
    files.push_back(std::move(file));
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
  AlikeWarnings damaged, doubled;
  std::vector<Profile> flows;
  const auto note_doubles = [&](const std::string& path, const Profile& profile) {
    const auto known = [&](const ProcessInfo& process) {
      return process.start_ns != 0 &&
             taken.count({process.pid, process.start_ns, process.layer}) > 0;
    };
    const auto& processes = profile.processes;
    if (const auto twice = std::find_if(processes.begin(), processes.end(), known);
        twice != processes.end())
      doubled.add(fmt::format("{}: process {}", path, twice->pid));
    for (const ProcessInfo& process : processes)
      taken.emplace(process.pid, process.start_ns, process.layer);
  };
  const auto take = [&](const ProfileFile& file, Result<Profile> read) -> Status {
    if (!read.is_ok()) return in_words_of_user(read.status(), file);
    if (file.format == Format::kExecutionTrace) {
      flows.push_back(std::move(read).value());
      return Status::ok();
    }
    if (read->partial) damaged.add(file.name);
    note_doubles(file.name, *read);
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
    reading = base_name(file.name);
    if (file.format != Format::kRocprofCsv) {
      PURLIN_TRY(take(file, profile::open_profile(file.path, rest())));
    } else if (!std::exchange(rocprof_read, true)) {
      PURLIN_TRY(take(file, profile::import_rocprof_csv(rocprof, rest())));
    }
  }
  if (first && flows.empty()) return error(Code::kInvalid, "no profile given");
  progress.clear();
  damaged.print(context.log, "damaged or cut short, taken as far as it reads");
  doubled.print(context.log, "in a file before, so that what it did counts twice");
  if (merger) merger->finish();
  merger.reset();
  for (const Profile& flow : flows) {
    profile::merge_data_flow(merged.data_flow, flow.data_flow);
    merged.coverage.notes.insert(merged.coverage.notes.end(), flow.coverage.notes.begin(),
                                 flow.coverage.notes.end());
  }
  profile::judge_by_timeline(merged);
  return merged;
}

Result<Profile> read_profiles(const Context& context, const std::vector<std::string>& paths) {
  PURLIN_ASSIGN(const std::vector<ProfileFile> files, detect_profiles(paths));
  return read_profiles(context, files);
}

}  // namespace purlin::cli
