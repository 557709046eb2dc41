// SPDX-License-Identifier: Apache-2.0
#include "guard/check/evidence.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "profile/format/file.h"
#include "profile/launcher.h"

#include <algorithm>
#include <map>

namespace purlin::guard {
namespace {

constexpr std::string_view kBefore = ".before.plprof", kAfter = ".after.plprof";

// A file name that separates items and is safe in a shell and a file system.
std::string file_name(const std::string& suite, const Item& item) {
  std::string name = suite + "-" + item.text();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.' &&
        c != '=')
      c = '_';
  // Different items may have equal names here: the hash separates them.
  return name.substr(0, 150) + "-" + FieldHasher().add(item.text()).hex().substr(0, 8);
}

Result<std::string> take(Arm& arm, const Item& item, const std::string& path) {
  profile::CaptureOptions options;
  options.command = {arm.label(), item.text()};
  options.build = arm.label();
  options.full = true;
  PURLIN_ASSIGN(const Profile profile,
                profile::capture_children(options, [&] { return arm.launch({item}).status(); }));
  if (profile.kernels.empty())
    return error(
        Code::kFailed, "no launch was seen: {}",
        profile.coverage.notes.empty() ? "it ran none" : profile.coverage.notes.front().text);
  PURLIN_TRY(profile::write_profile(path, profile));
  return path;
}

}  // namespace

std::string profile_stem(const std::string& directory, const std::string& suite, const Item& item,
                         const std::string& time) {
  std::string stamp;
  for (const char c : time)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) stamp += c;
  const std::string stem =
      absolute_path(join_path(directory, file_name(suite, item) + "." + stamp));
  const auto taken = [](const std::string& name) {
    return file_exists(name + std::string(kBefore)) || file_exists(name + std::string(kAfter));
  };
  std::string free = stem;
  for (int number = 2; taken(free); ++number) free = fmt::format("{}-{}", stem, number);
  return free;
}

Status keep_newest_profiles(const std::string& directory, const std::string& suite,
                            const Item& item, std::size_t kept) {
  const std::string begin = file_name(suite, item) + ".";
  PURLIN_ASSIGN(const std::vector<std::string> names, list_directory(directory));
  std::map<std::string, std::vector<std::string>> checks;  // by time
  for (const std::string& name : names)
    for (const std::string_view end : {kBefore, kAfter})
      if (starts_with(name, begin) && ends_with(name, end) &&
          name.size() > begin.size() + end.size())
        checks[name.substr(begin.size(), name.size() - begin.size() - end.size())].push_back(name);
  for (auto check = checks.begin(); checks.size() > kept; check = checks.erase(check))
    for (const std::string& name : check->second)
      PURLIN_TRY(remove_file(join_path(directory, name)));
  return Status::ok();
}

void take_profiles(Report* report, Arm& baseline, Arm& current, const std::string& directory,
                   int most) {
  std::vector<ReportItem*> slower;
  for (ReportItem& item : report->items)
    if (item.result.verdict == Verdict::kRegression) slower.push_back(&item);
  std::stable_sort(slower.begin(), slower.end(), [](const ReportItem* a, const ReportItem* b) {
    return a->result.effect.ratio > b->result.effect.ratio;
  });
  if (slower.size() > static_cast<std::size_t>(most)) slower.resize(static_cast<std::size_t>(most));
  if (slower.empty()) return;
  // The verdict took minutes; a folder that is not writable must not lose it.
  if (const Status made = make_directories(directory); !made.is_ok()) {
    report->notes.push_back("no profiles of slower kernels could be kept: " + made.message());
    return;
  }
  for (ReportItem* item : slower) {
    const Item name{item->kernel, item->shape, item->variant};
    const std::string stem =
        profile_stem(directory, report->suite, name, report->environment.recorded_at);
    Result<std::string> before = take(baseline, name, stem + std::string(kBefore));
    Result<std::string> after = take(current, name, stem + std::string(kAfter));
    if (const Status kept = keep_newest_profiles(directory, report->suite, name, kKeptProfiles);
        !kept.is_ok())
      item->notes.push_back("older profiles of it could not be removed: " + kept.message());
    if (!before.is_ok() || !after.is_ok()) {
      item->notes.push_back("no profile could be taken of it: " +
                            (before.is_ok() ? after : before).status().message());
      continue;
    }
    item->profile_before = *before;
    item->profile_after = *after;
    item->notes.push_back(fmt::format("look at it: purlin diff {} {}", *before, *after));
  }
}

}  // namespace purlin::guard
