// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sampled_stalls.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace purlin {
namespace {

auto key(const StallFunction& function) {
  return std::tie(function.name, function.device, function.build, function.code);
}

// The same instruction, reported twice. Where the reports disagree about its line, the choice does
// not depend on the order.
void fold(StallSite& into, const StallSite& from, const std::vector<std::string>& files) {
  const auto place = [&](const StallSite& site) {
    return std::tuple(site.file == 0, std::string_view(files[site.file]), site.line);
  };
  if (place(from) < place(into)) into.file = from.file, into.line = from.line;
  for (const StallCount& count : from.counts) into.add(count.reason, count.samples);
}

void order_sites(StallFunction& function, const std::vector<std::string>& files) {
  std::vector<StallSite>& sites = function.sites;
  const auto earlier = [](const StallSite& a, const StallSite& b) { return a.offset < b.offset; };
  if (!std::is_sorted(sites.begin(), sites.end(), earlier))
    std::stable_sort(sites.begin(), sites.end(), earlier);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (kept > 0 && sites[kept - 1].offset == sites[i].offset) {
      fold(sites[kept - 1], sites[i], files);
    } else {
      if (kept != i) sites[kept] = std::move(sites[i]);
      ++kept;
    }
  }
  sites.resize(kept);
}

// Up to this many samples a site has to have lost its place for `most` to be left.
double threshold(const std::vector<StallFunction>& functions, std::size_t total, std::size_t most) {
  std::vector<double> samples;
  samples.reserve(total);
  for (const StallFunction& function : functions)
    for (const StallSite& site : function.sites) samples.push_back(site.samples());
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(total - most);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

}  // namespace

void StallSite::add(std::uint32_t reason, double samples) {
  const auto at = std::lower_bound(
      counts.begin(), counts.end(), reason,
      [](const StallCount& count, std::uint32_t wanted) { return count.reason < wanted; });
  if (at != counts.end() && at->reason == reason) {
    at->samples += samples;
  } else {
    counts.insert(at, {reason, samples});
  }
}

double SampledStalls::samples() const {
  double sum = 0;
  for (const StallFunction& function : functions)
    for (const StallSite& site : function.sites) sum += site.samples();
  return sum;
}

void SampledStalls::widen_period(std::uint64_t least, std::uint64_t most) {
  if (least == 0) return;
  least_period = least_period == 0 ? least : std::min(least_period, least);
  most_period = std::max(most_period, most);
}

void SampledStalls::combine(std::size_t most) {
  std::stable_sort(functions.begin(), functions.end(),
                   [](const StallFunction& a, const StallFunction& b) { return key(a) < key(b); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (kept > 0 && key(functions[kept - 1]) == key(functions[i])) {
      std::vector<StallSite>& sites = functions[kept - 1].sites;
      sites.insert(sites.end(), std::make_move_iterator(functions[i].sites.begin()),
                   std::make_move_iterator(functions[i].sites.end()));
    } else {
      if (kept != i) functions[kept] = std::move(functions[i]);
      ++kept;
    }
  }
  functions.resize(kept);
  std::size_t total = 0;
  for (StallFunction& function : functions) {
    order_sites(function, files);
    total += function.sites.size();
  }
  if (total <= most) return;
  const double few = threshold(functions, total, most);
  for (StallFunction& function : functions) {
    for (StallSite& site : function.sites) {
      if (site.samples() > few) continue;
      site.offset = StallSite::kNowhere;
      site.file = site.line = 0;
    }
    order_sites(function, files);
  }
}

}  // namespace purlin
