// SPDX-License-Identifier: Apache-2.0
#include "analyze/stalls/sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace purlin::analyze {
namespace {

// A line, or an instruction of one module's code where its line is not known.
using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>;

struct Gathered {
  StallLine line;
  double most = -1;  // samples of the instruction that has most
  std::map<std::uint32_t, double> reasons;
};

Place place_of(const StallFunction& function, const StallSite& site) {
  if (site.file != 0 && site.line != 0) return {site.file, site.line, 0, 0};
  if (site.offset == StallSite::kNowhere) return {0, 0, 0, site.offset};
  return {0, 0, function.code, site.offset};
}

template <class Pairs>
void largest_first(Pairs& pairs) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

}  // namespace

std::string StallLine::where() const {
  if (line != 0) return fmt::format("{}:{}", file, line);
  return offset == StallSite::kNowhere ? "" : fmt::format("+{:#x}", offset);
}

const StallLine* StallSites::most_of(const std::string& reason) const {
  const StallLine* best = nullptr;
  double most = 0;
  for (const StallLine& line : lines)
    for (const auto& [name, count] : line.reasons)
      if (name == reason && count > most && !line.where().empty()) best = &line, most = count;
  return best;
}

StallSites sites_of(const SampledStalls& stalls, const std::vector<const StallFunction*>& parts) {
  StallSites out;
  std::map<Place, Gathered> places;
  for (const StallFunction* function : parts)
    for (const StallSite& site : function->sites) {
      Gathered& gathered = places[place_of(*function, site)];
      const double samples = site.samples();
      if (samples > gathered.most) {
        gathered.most = samples;
        gathered.line.offset = site.offset;
      }
      gathered.line.samples += samples;
      ++gathered.line.instructions;
      gathered.line.file = stalls.files[site.file];
      gathered.line.line = site.file != 0 ? site.line : 0;
      for (const StallCount& count : site.counts) {
        gathered.reasons[count.reason] += count.samples;
        out.reasons[stalls.reasons[count.reason]] += count.samples;
      }
    }
  for (auto& [place, gathered] : places) {
    if (gathered.line.line == 0) gathered.line.file.clear();
    for (const auto& [reason, samples] : gathered.reasons)
      gathered.line.reasons.emplace_back(stalls.reasons[reason], samples);
    largest_first(gathered.line.reasons);
    out.samples += gathered.line.samples;
    out.lines.push_back(std::move(gathered.line));
  }
  std::stable_sort(out.lines.begin(), out.lines.end(),
                   [](const StallLine& a, const StallLine& b) { return a.samples > b.samples; });
  return out;
}

}  // namespace purlin::analyze
