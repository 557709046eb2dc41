// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/notes.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::size_t kShownAlike = 3;  // notes of one cause

}  // namespace

std::vector<CoverageNote> group_notes(const std::vector<CoverageNote>& notes) {
  std::unordered_map<std::string_view, std::size_t> all;
  for (const CoverageNote& note : notes) ++all[note.cause];
  std::vector<CoverageNote> grouped;
  std::unordered_map<std::string_view, std::size_t> place;
  for (const CoverageNote& note : notes) {
    const std::size_t alike = all[note.cause];
    const auto [known, added] = place.try_emplace(note.cause, grouped.size());
    if (added || alike <= kShownAlike) {
      grouped.push_back(note);
      if (alike > kShownAlike)
        grouped.back().text += fmt::format("; and {} more notes of this kind", alike - 1);
      continue;
    }
    grouped[known->second].count += note.count;
    grouped[known->second].seconds += note.seconds;
  }
  return grouped;
}

}  // namespace purlin::analyze
