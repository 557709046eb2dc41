// SPDX-License-Identifier: Apache-2.0
#include "guard/evidence.h"

#include "base/files.h"
#include "base/hash.h"
#include "profile/format/file.h"
#include "profile/launcher.h"

#include <algorithm>

namespace purlin::guard {
namespace {

// A file name that tells items apart and holds nothing a shell or a file system minds.
std::string file_name(const std::string& suite, const Item& item) {
  std::string name = suite + "-" + item.text();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.' &&
        c != '=')
      c = '_';
  // Different items may be alike by now: the hash keeps them apart.
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
  // The verdict took minutes; a folder that cannot be written to must not cost it.
  if (const Status made = make_directories(directory); !made.is_ok()) {
    report->notes.push_back("no profiles of what became slower could be kept: " + made.message());
    return;
  }
  for (ReportItem* item : slower) {
    const Item name{item->kernel, item->shape, item->variant};
    const std::string path = absolute_path(join_path(directory, file_name(report->suite, name)));
    Result<std::string> before = take(baseline, name, path + ".before.plprof");
    Result<std::string> after = take(current, name, path + ".after.plprof");
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
